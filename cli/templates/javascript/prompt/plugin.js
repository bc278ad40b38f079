// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import { explain } from "./logic.js";

function argument(name, description, required) {
  return { name, title: null, description, required, extra: null };
}

const EXPLAIN = {
  name: "explain",
  title: null,
  description: "Asks for an explanation.",
  arguments: [
    argument("topic", "What to explain.", true),
    argument("audience", "Whom to explain it to.", false),
  ],
  extra: null,
};

// Refuses arguments that do not exist, and the lack of those that are required.
function check(given, known) {
  const unknown = Object.keys(given).find((name) => known.every((argument) => argument.name !== name));
  if (unknown !== undefined) throw { code: "invalid-input", message: `there is no argument ${unknown}` };
  const missing = known.find(({ name, required }) => required && !Object.hasOwn(given, name));
  if (missing) throw { code: "invalid-input", message: `the argument ${missing.name} is missing` };
}

export const lifecycle = {
  async start() {
    return { name: "{{name}}", version: "0.1.0", description: "{{description}}.", extra: null };
  },

  async stop() {},
};

export const prompts = {
  async listPrompts(cursor, _context) {
    if (cursor !== null) throw { code: "invalid-input", message: `there is no page ${JSON.stringify(cursor)}` };
    return { prompts: [EXPLAIN], next: null };
  },

  async getPrompt(name, args, _context) {
    if (name !== EXPLAIN.name) throw { code: "not-found", message: `there is no prompt ${name}` };
    const given = Object.fromEntries(args);
    check(given, EXPLAIN.arguments);
    const content = { body: { tag: "text", val: explain(given) }, extra: null };
    return { description: EXPLAIN.description, messages: [{ role: "user", content, extra: null }], extra: null };
  },
};
