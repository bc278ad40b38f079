/** The JSON Schema of what a definition takes or gives. */

import { kindOf } from "./registry.js";
import { nearest, suggestion } from "./nearest.js";
import { problems } from "./validate.js";

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** What authors call types, and what they mean. */
const OTHER_TYPES = {
  any: "leave `type` out for any value",
  bool: 'write `type: "boolean"`',
  date: 'write `{ type: "string", format: "date" }`',
  datetime: 'write `{ type: "string", format: "date-time" }`',
  dict: 'write `type: "object"`',
  double: 'write `type: "number"`',
  enum: 'write `{ type: "string", enum: ["…"] }`',
  float: 'write `type: "number"`',
  int: 'write `type: "integer"`',
  list: 'write `type: "array"`',
  map: 'write `type: "object"`',
  str: 'write `type: "string"`',
  text: 'write `type: "string"`',
};

/** The keywords of JSON Schema 2020-12, and `optional`, which is this package's own. */
const KEYWORDS = new Set(
  `$schema $id $ref $defs $anchor $comment $dynamicRef $dynamicAnchor $vocabulary definitions title description default
   deprecated readOnly writeOnly examples type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum
   maxLength minLength pattern format contentEncoding contentMediaType contentSchema items prefixItems additionalItems
   unevaluatedItems contains maxContains minContains maxItems minItems uniqueItems properties patternProperties
   additionalProperties unevaluatedProperties propertyNames required dependentRequired dependentSchemas maxProperties
   minProperties allOf anyOf oneOf not if then else optional`.split(/\s+/),
);

/** A schema that is not as it should be: where, and why. */
export class SchemaProblem extends Error {
  /** @param {string} [keyword] Of the schema at the path, the keyword that is wrong. */
  constructor(path, problem, hint, keyword) {
    super(`${path ? `\`${path}\` ` : ""}${problem}`);
    this.hint = hint;
    this.within = [...path.split(/[.[\]]+/), keyword].filter(Boolean);
  }
}

/**
 * The schema of an object, of one of:
 *
 * - its properties by their names: `{ name: { type: "string" } }`. A property is required unless it says
 *   `optional: true` or has a `default`;
 * - a whole JSON Schema: `{ type: "object", properties: … }`;
 * - an object of a schema library which gives JSON Schema: with a method `toJSONSchema` or `toJsonSchema`, or of the
 *   Standard JSON Schema interface (`~standard`.`jsonSchema`).
 *
 * No other properties are allowed, unless a whole schema allows them.
 *
 * @returns {{ schema: object, standard?: object }} `standard` validates and transforms, where the library can.
 */
export function objectSchema(given, direction = "input") {
  if (given === undefined) return { schema: { type: "object", properties: {}, additionalProperties: false } };
  if (given === null || (typeof given !== "object" && typeof given !== "function") || Array.isArray(given)) {
    throw new SchemaProblem("", `is ${kindOf(given)} and has to be an object of properties`, 'write `{ name: { type: "string" } }`');
  }
  const library = ofLibrary(given, direction);
  const schema = library ?? (typeof given.type === "string" || "$ref" in given ? given : ofProperties(given));
  if (schema.type !== "object") {
    const hint = library ? "put it into an object of the library, such as `z.object({ name: … })`" : 'write the properties by their names: `{ name: { type: "string" } }`';
    throw new SchemaProblem("", `has the type ${JSON.stringify(schema.type)} and has to be the schema of an object`, hint);
  }
  const normal = normalize(schema, "");
  if (library) delete normal.$schema;
  return { schema: { additionalProperties: false, ...normal }, standard: library && given["~standard"]?.validate ? given["~standard"] : undefined };
}

/** The schema of any value: of properties, as for objects, or whole. */
export function anySchema(given) {
  const isWhole = given !== null && typeof given === "object" && typeof given.type === "string";
  return isWhole && given.type !== "object" ? { schema: normalize(given, "") } : objectSchema(given, "output");
}

function ofLibrary(given, direction) {
  const options = { target: "draft-2020-12", io: direction };
  const standard = given["~standard"];
  const convert = standard?.jsonSchema?.[direction];
  try {
    if (typeof given.toJSONSchema === "function") return given.toJSONSchema(options);
    if (typeof given.toJsonSchema === "function") return given.toJsonSchema();
    if (typeof convert === "function") return convert(options);
  } catch (thrown) {
    throw new SchemaProblem("", `is a schema of which its library makes no JSON Schema: ${thrown.message}`, "arguments and results are JSON: use strings, numbers, truth values, arrays and objects, and for a date a string");
  }
  if (standard) {
    throw new SchemaProblem("", `is a schema of \`${standard.vendor}\` that gives no JSON Schema`, "use a version of it with `toJSONSchema`, or write the JSON Schema");
  }
}

function ofProperties(properties) {
  return { type: "object", properties };
}

/** The schema as it is written, with `optional` turned into `required`. */
function normalize(schema, path) {
  if (typeof schema === "boolean") return schema;
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) {
    const type = typeof schema === "string" ? schema : schema?.name?.toLowerCase();
    throw new SchemaProblem(path, `is ${kindOf(schema)} and has to be a JSON Schema`, `write \`{ type: "${TYPES.includes(type) ? type : "string"}" }\``);
  }
  if (path && schema["~standard"]) {
    throw new SchemaProblem(path, "is a schema of a library within one that is written by hand", "write the whole with the library, such as `z.object({ … })`, or all of it by hand");
  }
  for (const keyword of Object.keys(schema)) {
    const near = !KEYWORDS.has(keyword) && !keyword.startsWith("x-") && nearest(keyword, KEYWORDS);
    if (near) throw new SchemaProblem(path, `has the keyword \`${keyword}\`, which JSON Schema does not know`, `did you mean \`${near}\`?`, keyword);
  }
  checkType(schema, path);
  if ("enum" in schema && (!Array.isArray(schema.enum) || schema.enum.length === 0)) {
    throw new SchemaProblem(path, "has an `enum` that is no array of values", 'write `enum: ["…", "…"]`', "enum");
  }
  if ("pattern" in schema) checkPattern(schema.pattern, path);
  if ("required" in schema) checkRequired(schema.required, path);
  if (schema.default !== undefined) checkDefault(schema, path);
  const { optional: _, ...normal } = schema;
  if (schema.properties !== undefined) Object.assign(normal, normalProperties(schema, path));
  if (schema.items !== undefined) normal.items = normalize(schema.items, `${path}[]`);
  for (const keyword of ["anyOf", "oneOf", "allOf", "prefixItems"]) {
    if (schema[keyword] === undefined) continue;
    if (!Array.isArray(schema[keyword])) throw new SchemaProblem(path, `has \`${keyword}\`, which has to be an array`, `write \`${keyword}: [{ … }, { … }]\``, keyword);
    normal[keyword] = schema[keyword].map((each, index) => normalize(each, `${path}.${keyword}[${index}]`));
  }
  return normal;
}

function normalProperties(schema, path) {
  const given = schema.properties;
  if (given === null || typeof given !== "object" || Array.isArray(given)) {
    throw new SchemaProblem(path, `has \`properties\` that are ${kindOf(given)} and have to be an object`, 'write `properties: { name: { type: "string" } }`', "properties");
  }
  const properties = {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const name of required) {
    if (!Object.hasOwn(given, name)) throw new SchemaProblem(path, `requires \`${name}\`, which is none of its properties`, suggestion(name, Object.keys(given)), "required");
  }
  for (const [name, property] of Object.entries(given)) {
    const below = path ? `${path}.${name}` : name;
    properties[name] = normalize(property, below);
  }
  const implied = Object.keys(given).filter((name) => !given[name]?.optional && given[name]?.default === undefined);
  // A whole schema that says what it requires is taken at its word.
  const needed = schema.required === undefined ? implied : required;
  const closed = schema.additionalProperties === undefined ? { additionalProperties: false } : {};
  return { properties, ...(needed.length > 0 ? { required: needed } : {}), ...closed };
}

function checkType(schema, path) {
  if (schema.type === undefined) return;
  for (const type of [schema.type].flat()) {
    if (TYPES.includes(type)) continue;
    const isClass = typeof type === "function";
    const name = isClass ? type.name : type;
    const near = typeof name === "string" && nearest(name, TYPES);
    const other = Object.hasOwn(OTHER_TYPES, name) ? OTHER_TYPES[name] : near && `did you mean "${near}"?`;
    throw new SchemaProblem(path, `has the type ${isClass ? name : JSON.stringify(type)}, which JSON Schema does not know`, other || `the types are ${TYPES.join(", ")}`, "type");
  }
}

function checkPattern(pattern, path) {
  try {
    new RegExp(pattern, "u");
  } catch (error) {
    throw new SchemaProblem(path, `has a \`pattern\` that is no regular expression: ${error.message}`, "write `\\\\` before characters that stand for themselves", "pattern");
  }
}

function checkRequired(required, path) {
  if (Array.isArray(required)) return;
  const hint = typeof required === "boolean" ? "a property is required unless it says `optional: true`" : 'write `required: ["…"]` beside `properties`';
  throw new SchemaProblem(path, `has \`required\`, which is ${kindOf(required)} and has to be an array of names`, hint, "required");
}

function checkDefault(schema, path) {
  const [problem] = problems(schema.default, schema, "default");
  if (problem) throw new SchemaProblem(path, `has a \`default\` that does not fit: ${problem}`, "write a default that fits the schema, or leave it out", "default");
}
