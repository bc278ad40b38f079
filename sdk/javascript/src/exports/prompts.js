/** The interface `prompts`. */

import { TenonError } from "../errors.js";
import { registry } from "../registry.js";
import { suggestion } from "../nearest.js";
import { toPrompt } from "../kinds/prompt.js";
import { handled } from "./failure.js";
import { find, onlyPage, serve } from "./serve.js";

export const prompts = {
  async listPrompts(cursor, context) {
    return serve("the list of prompts", context, async () => {
      onlyPage(cursor);
      return { prompts: registry.prompts.map(({ record }) => record()), next: null };
    });
  },

  async getPrompt(name, args, context) {
    return serve(`prompt ${JSON.stringify(name)}`, context, (call) => fill(find(registry.prompts, "prompt", name), Object.fromEntries(args), call));
  },
};

/** Fills a prompt in. */
export async function fill(entry, given, context) {
  const known = Object.keys(entry.arguments);
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new TenonError("invalid-input", `${entry.what} has no argument \`${name}\`: ${suggestion(name, known)}`);
  }
  for (const [name, { optional, description }] of Object.entries(entry.arguments)) {
    if (!optional && !Object.hasOwn(given, name)) {
      throw new TenonError("invalid-input", `${entry.what}: the argument \`${name}\` is missing${description ? `: ${description}` : ""}`);
    }
  }
  return handled(entry, () => entry.handler(given, context), (value) => toPrompt(value, entry.description));
}
