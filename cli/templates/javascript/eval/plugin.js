// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import { concise } from "./logic.js";

const CONCISE = {
  name: "concise",
  description: "Passes when the output is short. Beyond that the score falls with its length.",
  optionsSchema: JSON.stringify({
    type: "object",
    properties: { most: { type: "integer", minimum: 1, description: "The most words." } },
    additionalProperties: false,
  }),
};

export const lifecycle = {
  async start() {
    return { name: "{{name}}", version: "0.1.0", description: "{{description}}.", extra: null };
  },

  async stop() {},
};

export const evals = {
  async listEvals() {
    return [CONCISE];
  },

  async evaluate(strategy, subject, options, _context) {
    if (strategy !== CONCISE.name) throw { code: "not-found", message: `there is no strategy ${strategy}` };
    // The host has checked the options against the schema.
    const { score, reason } = concise(JSON.parse(subject).output, JSON.parse(options));
    const verdict = score === 1 ? "pass" : "fail";
    return { score, verdict, findings: [{ criterion: "words", verdict, score, reason }], extra: null };
  },
};
