/** Completion: values for arguments of prompts and variables of resources, as a user types. */

import { kindOf } from "./registry.js";

/** How many values an answer has at most. */
const MOST_VALUES = 100;

/** What `complete` may be: values to choose from, or a function that gives some. */
export const completer = {
  check: (value) =>
    typeof value === "function" || (Array.isArray(value) && value.every((each) => typeof each === "string"))
      ? undefined
      : `it is ${kindOf(value)} and has to be an array of strings, or a function that returns one`,
};

/**
 * The values that could be meant.
 *
 * @param {string[] | ((typed: string, others: Record<string, string>, context: unknown) => unknown)} known Of an array,
 *   those are meant that begin with what was typed, in any case.
 */
export async function suggest(known, typed, others, context) {
  const values = typeof known === "function" ? await known(typed, others, context) : known.filter((each) => each.toLowerCase().startsWith(typed.toLowerCase()));
  if (!Array.isArray(values)) throw new TypeError(`\`complete\` returned ${kindOf(values)} and has to return an array of strings`);
  const texts = values.map(String);
  return { values: texts.slice(0, MOST_VALUES), total: texts.length, hasMore: texts.length > MOST_VALUES, extra: null };
}
