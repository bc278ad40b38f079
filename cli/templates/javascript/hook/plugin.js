// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import config from "tenon:plugin/config@0.1.0";

import { sign } from "./logic.js";

export const plugin = {
  async register() {
    return {
      identity: { name: "{{name}}", version: "0.1.0", description: "{{description}}." },
      tools: [],
      hooks: [{ tag: "message-sending" }],
      providers: [],
      evals: [],
      resources: false,
      prompts: false,
    };
  },

  async shutdown() {},
};

export const hookHandler = {
  async handle({ point, context }) {
    if (point.tag !== "message-sending") throw { tag: "not-found", val: "this point is not handled" };
    const setting = config.get("signature");
    const signed = sign(JSON.parse(context), setting ? JSON.parse(setting) : "Sent with {{name}}");
    return signed ? { tag: "replace", val: JSON.stringify(signed) } : { tag: "continue" };
  },
};
