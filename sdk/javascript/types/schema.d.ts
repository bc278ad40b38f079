/** JSON Schema as authors write it, and the TypeScript types that it describes. */

/** A JSON Schema (2020-12). */
export interface Schema {
  type?: SchemaType | readonly SchemaType[];
  title?: string;
  /** What the value is, for the model. */
  description?: string;
  /** What it is where it is missing. A property with a default is not required. */
  default?: unknown;
  /** The property may be missing. */
  optional?: boolean;
  enum?: readonly unknown[];
  const?: unknown;
  examples?: readonly unknown[];
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  items?: Schema | boolean;
  prefixItems?: readonly Schema[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  properties?: Properties;
  required?: readonly string[];
  additionalProperties?: Schema | boolean;
  patternProperties?: Properties;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  allOf?: readonly Schema[];
  not?: Schema;
  $ref?: string;
  $defs?: Properties;
  $schema?: string;
  readOnly?: boolean;
  deprecated?: boolean;
}

type SchemaType = "string" | "number" | "integer" | "boolean" | "object" | "array" | "null";

/** The properties of an object by their names. */
export interface Properties {
  readonly [name: string]: Schema;
}

/** The whole schema of an object. */
export interface ObjectSchema extends Schema {
  type: "object";
}

/** A schema of a library such as Zod, Valibot or ArkType which gives JSON Schema. */
export interface LibrarySchema<Output = unknown> {
  readonly "~standard": { readonly types?: { readonly input: unknown; readonly output: Output } | undefined };
}

/** What describes an object: its properties, its whole schema, or a schema of a library. */
export type ObjectDescription = Properties | ObjectSchema | LibrarySchema;

/** The type of the values that a schema describes. */
export type Infer<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer A)[] }
      ? Infer<A>
      : S extends { readonly oneOf: readonly (infer A)[] }
        ? Infer<A>
        : S extends { readonly type: infer T }
          ? T extends readonly (infer Each)[]
            ? InferType<Each, S>
            : InferType<T, S>
          : unknown;

type InferType<T, S> = T extends "string"
  ? string
  : T extends "number" | "integer"
    ? number
    : T extends "boolean"
      ? boolean
      : T extends "null"
        ? null
        : T extends "array"
          ? S extends { readonly items: infer I }
            ? Infer<I>[]
            : unknown[]
          : T extends "object"
            ? S extends { readonly properties: infer P }
              ? InferWhole<P, S>
              : S extends { readonly additionalProperties: infer V extends Schema }
                ? Record<string, Infer<V>>
                : Record<string, unknown>
            : unknown;

type Flat<T> = { [K in keyof T]: T[K] } & {};

/** The names of properties that may be missing. Those with a default are filled in. */
type OptionalNames<P> = { [K in keyof P]: P[K] extends { readonly optional: true } ? K : never }[keyof P];

/** The type of an object with these properties. */
export type InferProperties<P> = Flat<
  { [K in Exclude<keyof P, OptionalNames<P>>]: Infer<P[K]> } & { [K in OptionalNames<P>]?: Infer<P[K]> }
>;

type InferWhole<P, S> = S extends { readonly required: readonly (infer R)[] }
  ? Flat<{ [K in Extract<keyof P, R>]: Infer<P[K]> } & { [K in Exclude<keyof P, R>]?: Infer<P[K]> }>
  : InferProperties<P>;

/** The type of the objects that a description describes. */
export type InferObject<D> = [D] extends [undefined]
  ? Record<string, never>
  : D extends { readonly "~standard": { readonly types?: infer T } }
    ? NonNullable<T> extends { readonly output: infer O }
      ? O
      : Record<string, unknown>
    : D extends { readonly type: "object" }
      ? Infer<D>
      : InferProperties<D>;

/** The same as callers write it: properties with a default may be missing as well. */
export type InferInput<D> = [D] extends [undefined]
  ? Record<string, never>
  : D extends { readonly "~standard": { readonly types?: infer T } }
    ? NonNullable<T> extends { readonly input: infer I }
      ? I
      : Record<string, unknown>
    : D extends { readonly type: "object" }
      ? Infer<D>
      : Flat<Omit<InferProperties<D>, DefaultNames<D>> & Partial<Pick<InferProperties<D>, DefaultNames<D> & keyof InferProperties<D>>>>;

type DefaultNames<P> = { [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never }[keyof P];
