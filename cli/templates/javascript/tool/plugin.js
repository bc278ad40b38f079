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

export const lifecycle = {
  async start() {
    return { name: "{{name}}", version: "0.1.0", description: "{{description}}.", extra: null };
  },

  async stop() {},
};

export const tools = {
  async listTools() {
    return [GREET];
  },

  async callTool(name, args, _context) {
    if (name !== GREET.name) throw { code: "not-found", message: `there is no tool ${name}` };
    try {
      // The host has checked the arguments against the schema.
      return answer(greet(JSON.parse(args)));
    } catch (wrong) {
      // The model reads this, and may do better. Anything else that is thrown is a trap.
      if (wrong instanceof RangeError) return answer(wrong.message, true);
      throw wrong;
    }
  },
};
