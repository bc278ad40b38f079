/** The interface `evals`. */

import { TenonError } from "../errors.js";
import { registry } from "../registry.js";
import { toEvaluation } from "../kinds/evaluation.js";
import { problems, withDefaults } from "../validate.js";
import { handled } from "./failure.js";
import { find, parse, serve } from "./serve.js";

export const evals = {
  async listEvals() {
    return registry.evaluations.map(({ record }) => record());
  },

  async evaluate(strategy, subject, options, context) {
    return serve(`evaluation ${JSON.stringify(strategy)}`, context, (call) => evaluate(find(registry.evaluations, "evaluation", strategy), subject, options, call));
  },
};

/** Has a strategy judge a subject; both arguments are JSON. */
export async function evaluate(entry, subject, options, context) {
  const given = parse("options", options);
  const found = problems(given, entry.options);
  if (found.length > 0) throw new TenonError("invalid-input", `${entry.what}: ${found.join("; ")}`);
  const judged = parse("members of the subject", subject);
  if (judged.output === undefined) throw new TenonError("invalid-input", `${entry.what}: the subject has no "output"`);
  return handled(entry, () => entry.handler(judged, withDefaults(given, entry.options), context), toEvaluation);
}
