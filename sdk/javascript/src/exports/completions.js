/** The interface `completions`. */

import { TenonError } from "../errors.js";
import { registry } from "../registry.js";
import { suggest } from "../suggestions.js";
import { find, serve } from "./serve.js";

export const completions = {
  async completeArgument({ reference: { tag, val }, name, value, others }, context) {
    return serve("completion", context, (call) => {
      const [entries, kind] = tag === "prompt" ? [registry.prompts, "prompt"] : [registry.resources, "resource"];
      return complete(find(entries, kind, val), name, value, Object.fromEntries(others), call);
    });
  },
};

/** Suggests values for an argument of a prompt, or a variable of a resource. */
export async function complete(entry, name, value, others, context) {
  const known = entry.template ? entry.template.variables.map((variable) => variable.name) : Object.keys(entry.arguments);
  if (!known.includes(name)) throw new TenonError("invalid-input", `${entry.what} has no argument \`${name}\``);
  const completer = entry.template ? entry.definition.complete?.[name] : entry.arguments[name].complete;
  return suggest(completer ?? [], value, others, context);
}
