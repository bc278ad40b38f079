/** What all definitions have in common. */

import { detached } from "../context.js";
import { report } from "../registry.js";
import { SchemaProblem } from "../schema.js";

/** The definition behind what `tool`, `prompt` and the like return. */
export const DEFINITION = Symbol.for("tenon.definition");

/** What a definition is called in messages. */
export function named(kind, name) {
  return typeof name === "string" && name ? `${kind} ${JSON.stringify(name)}` : `a ${kind}`;
}

/** The function that a definition is: its handler, with a context for calls without a host. */
export function callable(name, entry, handler) {
  const call = (first, context = detached()) => handler(first, context);
  Object.defineProperty(call, "name", { value: name });
  Object.defineProperty(call, DEFINITION, { value: entry });
  return call;
}

/** A stand-in for a definition with problems, so that the rest of the plugin is still looked at. */
export function broken(name) {
  return callable(String(name), undefined, () => {
    throw new Error(`${name} is not defined as it should be`);
  });
}

/** The schema that a function gives; a problem of it is one of the definition. */
export function schemaOf(field, make, { what, location }) {
  try {
    return make();
  } catch (thrown) {
    if (!(thrown instanceof SchemaProblem)) throw thrown;
    report({ what, field, within: thrown.within, problem: thrown.message, hint: thrown.hint, location });
    return undefined;
  }
}

/** The record of members that the contract does not name. */
export const extra = (meta) => (meta === undefined ? null : JSON.stringify(meta));
