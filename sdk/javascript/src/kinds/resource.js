/** Resources: things to read, by their URIs. */

import { asBytes, toContents, toLink } from "../content.js";
import { callerOf } from "../location.js";
import * as field from "../fields.js";
import { suggestion } from "../nearest.js";
import { checkFields, kindOf, register, report } from "../registry.js";
import { completer } from "../suggestions.js";
import { UriTemplate } from "../uri-template.js";
import { broken, callable, extra, named } from "./definition.js";

const FIELDS = {
  name: { ...field.text },
  title: field.text,
  description: field.description,
  mimeType: field.text,
  size: { check: (value) => (Number.isSafeInteger(value) && value >= 0 ? undefined : "it has to be a number of bytes") },
  list: field.optionalFunction,
  complete: field.json,
  subscribe: field.flag,
  meta: field.json,
  handler: field.handler,
};

/**
 * Defines a resource, or a family of them by a URI template (RFC 6570).
 *
 * The handler gets what the variables stand for, and the context. It returns a string, bytes, an object (which is
 * written as JSON), or an array of `{ uri, text | blob, mimeType }` for a URI that stands for several.
 *
 * @param {string} uri Such as `notes://all` or `notes://{name}`.
 * @param {object} definition See the type `ResourceDefinition`. `list` says which resources of a template there are
 *   now: `{ uri }` or `{ variables }` each, with a `name`, `title`, `description` and `mimeType` of their own if they have any.
 *   With `subscribe`, clients may ask to be told of changes, which the plugin reports with `notify.resourceUpdated(uri)`.
 */
export function resource(uri, definition) {
  const location = callerOf(resource);
  const what = named("resource", uri);
  const template = parse(uri, { what, location });
  if (!template || !checkFields(definition, FIELDS, { what, location })) return broken(what);
  if (!checkComplete(template, definition.complete, { what, location })) return broken(what);
  const isTemplate = template.variables.length > 0;
  if (!isTemplate && definition.list) {
    report({ what, field: "list", problem: "a resource without variables is listed by itself", hint: "remove it", location });
  }
  const entry = {
    key: uri,
    what,
    location,
    template,
    isTemplate,
    definition,
    name: definition.name ?? nameOf(uri),
    completes: definition.complete !== undefined,
    subscribes: definition.subscribe === true,
    handler: (variables, context) => definition.handler(variables, context),
  };
  register("resources", entry, what);
  return callable(entry.name, entry, entry.handler);
}

function parse(uri, { what, location }) {
  const complain = (problem) => report({ what, field: "uri", problem, hint: 'write `resource("notes://{name}", { … })`', location });
  if (typeof uri !== "string") return void complain(`it is ${kindOf(uri)} and has to be a string`);
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri)) return void complain(`${JSON.stringify(uri)} is no URI: it has no scheme`);
  try {
    return new UriTemplate(uri);
  } catch (thrown) {
    return void complain(`${JSON.stringify(uri)} is no URI template: ${thrown.message}`);
  }
}

function checkComplete(template, complete = {}, { what, location }) {
  const known = template.variables.map(({ name }) => name);
  return Object.entries(complete).every(([name, each]) => {
    const problem = known.includes(name) ? completer.check(each) : `the template has no variable \`${name}\`: ${suggestion(name, known)}`;
    if (problem) report({ what, field: `complete.${name}`, problem, location });
    return !problem;
  });
}

/** The last part of a URI that is no variable. */
function nameOf(uri) {
  const parts = uri.replace(/\{[^}]*\}/g, "").split(/[:/]+/).filter(Boolean);
  return parts.at(-1) ?? uri;
}

/** The link by which a resource without variables is listed. */
export function toListed({ key, name, definition }) {
  const { title, description, mimeType, size, meta } = definition;
  return { link: toLink({ uri: key, name, title, description, mimeType, size }), extra: extra(meta) };
}

/** The template as it is listed. */
export function toTemplate({ key, name, definition }) {
  const { title = null, description, mimeType = null, meta } = definition;
  return { uriTemplate: key, name, title, description, mimeType, extra: extra(meta) };
}

/** What `list` of a template returned. */
export function toListedAll({ what, template, definition }, value) {
  if (!Array.isArray(value)) throw new TypeError(`\`list\` of ${what} returned ${kindOf(value)} and has to return an array`);
  return value.map((item) => {
    if (item === null || typeof item !== "object") throw new TypeError(`\`list\` of ${what} returned ${kindOf(item)} in its array and has to return \`{ uri }\` or \`{ variables }\``);
    const { uri, variables, meta, ...about } = item;
    const at = uri ?? template.expand(variables ?? {});
    const name = about.name ?? (Object.values(variables ?? {}).flat().join("/") || at);
    return { link: toLink({ description: definition.description, mimeType: definition.mimeType, ...about, name, uri: at }), extra: extra(meta) };
  });
}

/** What a handler returned, as contents of the contract. */
export function toResourceContents(value, uri, { what, definition }) {
  const { mimeType } = definition;
  if (Array.isArray(value) && value.every((part) => typeof part?.uri === "string")) {
    return value.map((part) => toContents(part.uri, part.blob ?? part.text ?? "", part.mimeType ?? mimeType));
  }
  if (typeof value === "string") return [toContents(uri, value, mimeType ?? "text/plain")];
  if (asBytes(value)) return [toContents(uri, value, mimeType ?? "application/octet-stream")];
  if (value === null || typeof value !== "object" || typeof value.then === "function") {
    throw new TypeError(`${what} returned ${kindOf(value)} and has to return a string, bytes, or an object for JSON`);
  }
  return [toContents(uri, JSON.stringify(value), mimeType ?? "application/json")];
}
