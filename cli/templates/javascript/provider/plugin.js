// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import { repeat } from "./logic.js";

const MODEL = "parrot";

export const lifecycle = {
  async start() {
    return { name: "{{name}}", version: "0.1.0", description: "{{description}}.", extra: null };
  },

  async stop() {},
};

export const providers = {
  async listProviders() {
    return [{ name: "{{name}}", description: "Repeats what it is told" }];
  },

  async listModels() {
    return [
      {
        id: MODEL,
        provider: "{{name}}",
        title: "Parrot",
        contextWindow: null,
        maxOutputTokens: null,
        features: {},
      },
    ];
  },

  async complete({ model, messages }, _context) {
    if (model !== MODEL) throw { code: "not-found", message: `there is no model ${model}` };
    const told = messages.findLast(({ role }) => role === "user");
    if (!told) throw { code: "invalid-input", message: "the request has no user message" };
    const texts = told.parts.filter(({ tag }) => tag === "text").map(({ val }) => val);
    const { text, words } = repeat(texts);
    return {
      parts: [{ tag: "text", val: text }],
      summary: {
        model,
        stopReason: { tag: "end-turn" },
        usage: { input: words, output: words, cachedInput: 0, reasoning: 0 },
        extra: null,
      },
    };
  },
};
