/**
 * Write Tenon plugins in JavaScript and TypeScript.
 *
 * A plugin is a file that calls the functions below; `tenon build` makes a component of it. Handlers stay plain
 * functions, which tests call natively; `@tenon/sdk/testing` has a host for them.
 */

import type { Content, ToolResult } from "./content.js";
import type { Context } from "./context.js";
import type { Delta, Model, ProviderAnswer, ProviderRequest, Summary } from "./model.js";
import type { Infer, InferInput, InferObject, ObjectDescription, ObjectSchema, Properties, Schema } from "./schema.js";

export { audio, embedded, image, resourceLink, text, toolResult } from "./content.js";
export type { Block, Content, Meta, ResourceContents, ResourceLink, ToolResult } from "./content.js";
export type { Context } from "./context.js";
export { TenonError, ToolError } from "./errors.js";
export type { ErrorCode } from "./errors.js";
export { hook, veto } from "./hooks.js";
export type { Hook, HookContext, HookContexts, HookOptions, HookPoint, Veto } from "./hooks.js";
export type * from "./model.js";
export type { Infer, InferObject, ObjectDescription, Properties, Schema } from "./schema.js";
export { config, inference, log, memory, messaging, notify, secrets, state, tools, user } from "./services.js";
export type { Bucket, ToolAnswer } from "./services.js";

type Awaitable<T> = T | Promise<T>;

/** What a tool without `output` may return. */
export type ToolReturn = string | number | boolean | bigint | object | Content | ToolResult | readonly (string | Content)[] | null | undefined | void;

type Returned<O> = [O] extends [undefined] ? ToolReturn : Output<O> | ToolResult | Content;
type Output<O> = O extends { readonly type: infer T extends string } ? (T extends "object" ? InferObject<O> : Infer<O>) : InferObject<O>;

/** What a tool is, and does. */
export interface ToolDefinition<I, O> {
  /** Unique in the plugin: 1 to 128 of the characters A-Z, a-z, 0-9, `_`, `-` and `.`. */
  name: string;
  /** The name that people see. */
  title?: string;
  /** What the tool does and when to use it, for the model. */
  description: string;
  /**
   * The arguments: their JSON Schemas by their names, a whole schema of an object, or a schema of a library. An argument
   * is required unless it says `optional: true` or has a `default`, and there are no others.
   */
  input?: I;
  /** What the structured content of the answer is, described in the same way. */
  output?: O;
  /** It changes nothing. */
  readOnly?: boolean;
  /** It may destroy or overwrite something. */
  destructive?: boolean;
  /** A second call with the same arguments changes nothing more, so that the host may retry a failed one. */
  idempotent?: boolean;
  /** It reaches outside of what the host knows: the web, for example. */
  openWorld?: boolean;
  /** The capabilities that it cannot work without, such as `network`: where one is not granted, the tool is left out. */
  capabilities?: readonly string[];
  /** Members of the tool in MCP that are not named here, such as `_meta`. */
  meta?: Record<string, unknown>;
  /** What it does. A `ToolError` that it throws tells the model what is wrong. */
  handler(args: InferObject<I>, context: Context): Awaitable<Returned<O>>;
}

/** A tool as a function, which tests call. */
export interface Tool<I, O> {
  (args: InferInput<I>, context?: Context): Awaitable<Returned<O>>;
}

/** Defines a tool: a function that a model or a program calls by name. */
export declare function tool<const I extends ObjectDescription | undefined = undefined, const O extends ObjectDescription | Schema | undefined = undefined>(
  definition: ToolDefinition<I, O>,
): Tool<I, O>;

type VariableNames<U extends string> = U extends `${string}{${infer Expression}}${infer Rest}` ? NamesOf<WithoutOperator<Expression>> | VariableNames<Rest> : never;
type WithoutOperator<E extends string> = E extends `${"+" | "#" | "/" | "?" | "&"}${infer Rest}` ? Rest : E;
type NamesOf<E extends string> = E extends `${infer First},${infer Rest}` ? First | NamesOf<Rest> : E;
type QueryNames<U extends string> = U extends `${string}{${"?" | "&"}${infer Expression}}${infer Rest}` ? NamesOf<Expression> | QueryNames<Rest> : never;
type Value<N extends string> = N extends `${string}*` ? string[] : string;
type Plain<N extends string> = N extends `${infer Name}*` ? Name : N;

/** What the variables of a URI template stand for. Those of a query may be missing. */
export type Variables<U extends string> = string extends U
  ? Record<string, any>
  : { [N in Exclude<VariableNames<U>, QueryNames<U>> as Plain<N>]: Value<N> } & { [N in QueryNames<U> as Plain<N>]?: Value<N> };

/** Values to choose from, or a function that gives those which could be meant. */
export type Complete = readonly string[] | ((typed: string, others: Record<string, string>, context: Context) => Awaitable<readonly string[]>);

/** A resource of a template as it is listed: by its URI, or what the variables stand for. */
export type Listed<U extends string> = { name?: string; title?: string; description?: string; mimeType?: string; size?: number } & ({ uri: string } | { variables: Variables<U> });

/** What a resource is, and contains. */
export interface ResourceDefinition<U extends string> {
  /** The name that programs use; without one it is taken from the URI. */
  name?: string;
  /** The name that people see. */
  title?: string;
  description: string;
  /** Without one it follows from what the handler returns. */
  mimeType?: string;
  /** The size of a resource without variables, in bytes. */
  size?: number;
  /** Which resources of a template there are now. */
  list?(context: Context): Awaitable<readonly Listed<U>[]>;
  /** Values for variables, as a user types. */
  complete?: { [N in Plain<VariableNames<U>>]?: Complete };
  /** Clients may ask to be told of changes, which the plugin reports with `notify.resourceUpdated(uri)`. */
  subscribe?: boolean;
  meta?: Record<string, unknown>;
  /** Reads it. An object is written as JSON. A `TenonError` of the code `not-found` says that there is none. */
  handler(variables: Variables<U>, context: Context): Awaitable<string | Uint8Array | object | readonly { uri: string; mimeType?: string; text?: string; blob?: Uint8Array }[]>;
}

/** A resource as a function, which tests call. */
export interface Resource<U extends string> {
  (variables: Variables<U>, context?: Context): ReturnType<ResourceDefinition<U>["handler"]>;
}

/** Defines a resource, or a family of them by a URI template (RFC 6570) such as `notes://{name}`. */
export declare function resource<const U extends string>(uri: U, definition: ResourceDefinition<U>): Resource<U>;

/** An argument of a prompt, which is a text. */
export interface PromptArgument {
  title?: string;
  description?: string;
  optional?: boolean;
  complete?: Complete;
  meta?: Record<string, unknown>;
}

type PromptArguments = { readonly [name: string]: PromptArgument };
type PromptValues<A> = [A] extends [undefined]
  ? Record<string, never>
  : { [K in keyof A as A[K] extends { readonly optional: true } ? never : K]: string } & { [K in keyof A as A[K] extends { readonly optional: true } ? K : never]?: string };

/** What a prompt says: a string or content is a message of the user. */
export type PromptMessage = string | Content | { role: "user" | "assistant"; content: string | Content };
export type PromptReturn = PromptMessage | readonly PromptMessage[] | { description?: string; messages: readonly PromptMessage[] };

/** What a prompt is, and says. */
export interface PromptDefinition<A> {
  name: string;
  title?: string;
  description: string;
  /** Its arguments by their names. One is required unless it says `optional: true`. */
  arguments?: A;
  meta?: Record<string, unknown>;
  handler(args: PromptValues<A>, context: Context): Awaitable<PromptReturn>;
}

/** A prompt as a function, which tests call. */
export interface Prompt<A> {
  (args: PromptValues<A>, context?: Context): Awaitable<PromptReturn>;
}

/** Defines a prompt: messages prepared for a user to choose. */
export declare function prompt<const A extends PromptArguments | undefined = undefined>(definition: PromptDefinition<A>): Prompt<A>;

export type Verdict = "pass" | "fail" | "inconclusive";

/** What one criterion found. */
export interface Finding {
  criterion: string;
  verdict: Verdict;
  /** From 0 to 1, for criteria that have degrees. */
  score?: number | undefined;
  /** Why, for people. */
  reason: string;
}

/** What is judged. */
export interface Subject {
  /** What was produced. */
  output: unknown;
  /** What it was produced from. */
  input?: unknown;
  /** What should have been produced. */
  expected?: unknown;
  [member: string]: unknown;
}

/**
 * What a strategy returns: a score from 0 (worst) to 1 (best), which passes when it is 1; `true` or `false`; findings,
 * whose score is the share that passed; or a whole evaluation.
 */
export type EvaluationReturn = number | boolean | readonly Finding[] | { score?: number; verdict?: Verdict; findings?: readonly Finding[]; reason?: string; extra?: Record<string, unknown> };

/** What a strategy is, and does. */
export interface EvaluationDefinition<O> {
  name: string;
  description: string;
  /** Its options, described as the arguments of a tool. */
  options?: O;
  handler(subject: Subject, options: InferObject<O>, context: Context): Awaitable<EvaluationReturn>;
}

/** A strategy as a function, which tests call. */
export interface Evaluation<O> {
  (subject: Subject, options?: InferInput<O>, context?: Context): Awaitable<EvaluationReturn>;
}

/** Defines a strategy that scores what an agent or a model has produced. */
export declare function evaluation<const O extends Properties | ObjectSchema | undefined = undefined>(definition: EvaluationDefinition<O>): Evaluation<O>;

/** What one criterion found: whether it passed, or a score from 0 to 1, where 1 passes; and why, for people. */
export declare function finding(criterion: string, passed: boolean | number, reason: string): Finding;

/** What a provider is, and answers. One of `complete` and `stream` is enough. */
export interface ProviderDefinition {
  name: string;
  description: string;
  /** The models that there are now. */
  models: readonly (string | Model)[] | (() => Awaitable<readonly (string | Model)[]>);
  /** Answers in one piece. */
  complete?(request: ProviderRequest, context: Context): Awaitable<ProviderAnswer>;
  /** Answers piece by piece, and returns how the answer ended. */
  stream?(request: ProviderRequest, context: Context): AsyncGenerator<Delta, Summary | void>;
}

/** A provider as a function, which answers in one piece. */
export interface Provider {
  (request: ProviderRequest, context?: Context): Promise<unknown>;
}

/** Defines a provider of language models. */
export declare function provider(definition: ProviderDefinition): Provider;
