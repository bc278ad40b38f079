// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import { greet } from "./logic.js";

const GREET = {
  name: "greet",
  title: null,
  description: "Greets somebody.",
  inputSchema: JSON.stringify({
    type: "object",
    properties: { name: { type: "string", description: "Whom to greet." } },
    required: ["name"],
    additionalProperties: false,
  }),
  outputSchema: null,
  annotations: { readOnly: true, destructive: null, idempotent: true, openWorld: null },
  capabilities: [],
  extra: null,
};

function answer(text, isError = false) {
  return { content: [{ body: { tag: "text", val: text }, extra: null }], structured: null, isError, extra: null };
}

export const plugin = {
  async register() {
    return {
      identity: { name: "{{name}}", version: "0.1.0", description: "{{description}}." },
      tools: [GREET],
      hooks: [],
      providers: [],
      evals: [],
      resources: false,
      prompts: false,
    };
  },

  async shutdown() {},
};

export const toolHandler = {
  async call(name, args, _context) {
    if (name !== GREET.name) throw { tag: "not-found", val: `there is no tool ${name}` };
    try {
      // The host has checked the arguments against the schema.
      return answer(greet(JSON.parse(args)));
    } catch (wrong) {
      // The model reads this, and may do better. Anything else that is thrown is a trap.
      if (wrong instanceof RangeError) return answer(wrong.message, true);
      throw wrong;
    }
  },

  async cancel(_callId) {},
};
