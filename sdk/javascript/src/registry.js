/** What the plugin has defined, and the problems with that. */

import { DefinitionError } from "./errors.js";
import { suggestion } from "./nearest.js";

/** The definitions by their kind, in the order in which they were made. */
export const registry = {
  tools: [],
  hooks: [],
  resources: [],
  prompts: [],
  evaluations: [],
  providers: [],
};

/** The problems that were found while they are collected; nothing where each is thrown. */
let collected;

/** From now on, problems are collected in this list and not thrown, so that the build reports all of them at once. */
export function collectProblems(list) {
  collected = list;
}

/** Reports a problem of a definition: throws it, or keeps it for the build. */
export function report(details) {
  const error = new DefinitionError(details);
  if (!collected) throw error;
  collected.push(error.details);
}

/**
 * Adds a definition.
 *
 * @param {keyof typeof registry} kind
 * @param {{ key: string, location?: string }} entry
 * @param {string} what The definition, in messages: `tool "greet"`.
 */
export function register(kind, entry, what) {
  const other = registry[kind].find(({ key }) => key === entry.key);
  if (other && kind !== "hooks") {
    const there = other.location ? ` at ${other.location}` : "";
    report({ what, problem: `it is defined twice: the first one is${there || " above"}`, location: entry.location, hint: "give one of them another name, or remove it" });
    return;
  }
  registry[kind].push(entry);
}

/** Forgets all definitions: for tests of this package. */
export function forget() {
  for (const list of Object.values(registry)) list.length = 0;
}

/** What other libraries, MCP and model APIs call the fields of definitions. */
const OTHER_NAMES = {
  annotations: "readOnly",
  callback: "handler",
  destructiveHint: "destructive",
  execute: "handler",
  func: "handler",
  idempotentHint: "idempotent",
  inputSchema: "input",
  openWorldHint: "openWorld",
  outputSchema: "output",
  parameters: "input",
  readOnlyHint: "readOnly",
  required: "optional",
  returns: "output",
  run: "handler",
  schema: "input",
};

/**
 * Checks the fields of a definition. Each field has a function that says what it has to be, or nothing if it is that.
 *
 * @param {object} definition What the author wrote.
 * @param {Record<string, { required?: boolean, check(value: unknown, definition: object): string | undefined, hint?: string }>} fields
 * @returns {boolean} Whether all is as it should be.
 */
export function checkFields(definition, fields, { what, location }) {
  if (definition === null || typeof definition !== "object" || Array.isArray(definition) || typeof definition.then === "function") {
    const needed = Object.keys(fields).filter((name) => fields[name].required);
    const hint = `write one object, \`{ ${(needed.length > 0 ? needed : Object.keys(fields).slice(0, 2)).map((name) => `${name}: …`).join(", ")} }\``;
    report({ what, problem: `its definition is ${kindOf(definition)} and has to be an object`, hint, location });
    return false;
  }
  let sound = true;
  const complain = (field, problem, hint, isMissing = false) => {
    sound = false;
    report({ what, field, problem, hint, location, isMissing });
  };
  for (const [name, { required, check, hint }] of Object.entries(fields)) {
    const value = definition[name];
    if (value === undefined) {
      if (required) complain(name, "it is missing", hint, true);
      continue;
    }
    const expected = check(value, definition);
    if (expected) complain(name, expected, hint);
  }
  for (const name of Object.keys(definition)) {
    if (!Object.hasOwn(fields, name)) complain(name, "there is no such field", suggestion(OTHER_NAMES[name] ?? name, Object.keys(fields)));
  }
  return sound;
}

/** What a value is, with an article. */
export function kindOf(value) {
  if (value === null) return "null";
  if (value === undefined) return "undefined";
  if (Array.isArray(value)) return "an array";
  if (typeof value?.then === "function") return "a promise";
  if (typeof value === "object") {
    const name = value.constructor?.name;
    return name && name !== "Object" ? `an object of the class ${name}` : "an object";
  }
  return typeof value === "number" ? `the number ${value}` : typeof value === "boolean" ? `${value}` : `a ${typeof value}`;
}
