/** Checks values against their JSON Schema, as far as tools use it: what is wrong, where, and what was expected. */

import { suggestion } from "./nearest.js";

/** What a value is in JSON. */
function jsonType(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

const isOf = (value, type) => jsonType(value) === type || (type === "number" && jsonType(value) === "integer");

/** A value as it is shown in a message: at most 60 characters of JSON. */
function shown(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

const article = (type) => (/^[aio]/.test(type) ? `an ${type}` : `a ${type}`);

const FORMATS = {
  email: /^[^\s@]+@[^\s@]+\.[^\s@]+$/,
  uri: /^[A-Za-z][A-Za-z0-9+.\-]*:\S*$/,
  date: /^\d{4}-\d\d-\d\d$/,
  "date-time": /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
};

/**
 * What is wrong with a value; an empty list if nothing is.
 *
 * @param {unknown} value
 * @param {object | boolean} schema
 * @param {string} path Where the value is: `items[2].name`.
 * @returns {string[]}
 */
export function problems(value, schema, path = "", root = schema) {
  const here = path ? `\`${path}\`` : "the value";
  if (schema === true || schema === undefined) return [];
  if (schema === false) return [`${here} is not allowed`];
  if (typeof schema.$ref === "string") {
    const target = resolve(root, schema.$ref);
    if (target) return problems(value, target, path, root);
  }
  if (schema.const !== undefined && !isSame(value, schema.const)) return [`${here} is ${shown(value)} and has to be ${shown(schema.const)}`];
  if (schema.enum && !schema.enum.some((each) => isSame(each, value))) {
    const near = typeof value === "string" ? suggestion(value, schema.enum.filter((each) => typeof each === "string")) : "";
    const meant = near.startsWith("did you mean") ? `; ${near}` : "";
    return [`${here} is ${shown(value)} and has to be one of ${schema.enum.map(shown).join(", ")}${meant}`];
  }
  if (schema.type !== undefined) {
    const types = [schema.type].flat();
    if (!types.some((type) => isOf(value, type))) {
      return [`${here} is ${shown(value)} and has to be ${types.map(article).join(" or ")}`];
    }
  }
  return [...ofCombination(value, schema, path, root, here), ...ofKind(value, schema, path, root, here)];
}

function ofCombination(value, schema, path, root, here) {
  const found = (schema.allOf ?? []).flatMap((each) => problems(value, each, path, root));
  for (const keyword of ["anyOf", "oneOf"]) {
    if (!schema[keyword]) continue;
    const tried = schema[keyword].map((each) => problems(value, each, path, root));
    const fitting = tried.filter((each) => each.length === 0).length;
    if (fitting === 0) found.push(`${here} is none of what it may be: ${tried.map((each) => each[0]).join("; or ")}`);
    if (fitting > 1 && keyword === "oneOf") found.push(`${here} is several of what it may be, and has to be one`);
  }
  if (schema.not !== undefined && problems(value, schema.not, path, root).length === 0) found.push(`${here} is what it may not be`);
  return found;
}

function ofKind(value, schema, path, root, here) {
  if (typeof value === "string") return ofString(value, schema, here);
  if (typeof value === "number") return ofNumber(value, schema, here);
  if (Array.isArray(value)) return ofArray(value, schema, path, root, here);
  if (value !== null && typeof value === "object") return ofObject(value, schema, path, root, here);
  return [];
}

function ofString(value, schema, here) {
  const length = [...value].length;
  const found = [];
  if (length < schema.minLength) found.push(`${here} has ${length} characters and needs at least ${schema.minLength}`);
  if (length > schema.maxLength) found.push(`${here} has ${length} characters and may have at most ${schema.maxLength}`);
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value)) found.push(`${here} is ${shown(value)} and has to match \`${schema.pattern}\``);
  const format = FORMATS[schema.format];
  if (format && !format.test(value)) found.push(`${here} is ${shown(value)} and has to be a ${schema.format}`);
  return found;
}

function ofNumber(value, schema, here) {
  const found = [];
  const check = (bad, limit) => bad && found.push(`${here} is ${value} and has to be ${limit}`);
  check(value < schema.minimum, `at least ${schema.minimum}`);
  check(value > schema.maximum, `at most ${schema.maximum}`);
  check(value <= schema.exclusiveMinimum, `greater than ${schema.exclusiveMinimum}`);
  check(value >= schema.exclusiveMaximum, `less than ${schema.exclusiveMaximum}`);
  const quotient = value / schema.multipleOf;
  check(schema.multipleOf !== undefined && Math.abs(quotient - Math.round(quotient)) > 1e-9, `a multiple of ${schema.multipleOf}`);
  return found;
}

function ofArray(value, schema, path, root, here) {
  const found = [];
  if (value.length < schema.minItems) found.push(`${here} has ${value.length} items and needs at least ${schema.minItems}`);
  if (value.length > schema.maxItems) found.push(`${here} has ${value.length} items and may have at most ${schema.maxItems}`);
  if (schema.uniqueItems && value.some((item, index) => value.slice(0, index).some((other) => isSame(item, other)))) {
    found.push(`${here} has an item twice`);
  }
  const fixed = schema.prefixItems?.length ?? 0;
  value.forEach((item, index) => {
    const of = index < fixed ? schema.prefixItems[index] : schema.items;
    found.push(...problems(item, of, `${path}[${index}]`, root));
  });
  return found;
}

function ofObject(value, schema, path, root, here) {
  const found = [];
  const properties = schema.properties ?? {};
  const below = (name) => (path ? `${path}.${name}` : name);
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) found.push(missing(below(name), properties[name]));
  }
  const unknown = [];
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) found.push(...problems(member, properties[name], below(name), root));
    else if (isOfPattern(name, schema.patternProperties)) continue;
    else if (schema.additionalProperties === false) unknown.push(name);
    else found.push(...problems(member, schema.additionalProperties, below(name), root));
  }
  for (const name of unknown) {
    const free = Object.keys(properties).filter((known) => !Object.hasOwn(value, known));
    found.push(`there is no \`${below(name)}\`: ${suggestion(name, free.length > 0 ? free : Object.keys(properties))}`);
  }
  const count = Object.keys(value).length;
  if (count < schema.minProperties) found.push(`${here} has ${count} members and needs at least ${schema.minProperties}`);
  if (count > schema.maxProperties) found.push(`${here} has ${count} members and may have at most ${schema.maxProperties}`);
  return found;
}

function missing(path, schema) {
  if (schema?.enum) return `\`${path}\` is missing: it has to be one of ${schema.enum.map(shown).join(", ")}`;
  const type = schema?.type ? ` (${[schema.type].flat().join(" or ")})` : "";
  const about = schema?.description ? `: ${schema.description}` : "";
  return `\`${path}\`${type} is missing${about}`;
}

function isOfPattern(name, patterns = {}) {
  return Object.keys(patterns).some((pattern) => new RegExp(pattern, "u").test(name));
}

function resolve(root, reference) {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  return reference.slice(2).split("/").reduce((at, name) => at?.[name.replace(/~1/g, "/").replace(/~0/g, "~")], root);
}

function isSame(one, other) {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const names = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

/** A value with the defaults of its schema where members are missing. */
export function withDefaults(value, schema) {
  if (value === null || typeof value !== "object" || Array.isArray(value) || !schema?.properties) return value;
  const filled = { ...value };
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!Object.hasOwn(filled, name) && property?.default !== undefined) filled[name] = structuredCopy(property.default);
    else if (Object.hasOwn(filled, name)) filled[name] = withDefaults(filled[name], property);
  }
  return filled;
}

const structuredCopy = (value) => JSON.parse(JSON.stringify(value));
