// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import config from "tenon:plugin/config@0.2.0";

import { sign } from "./logic.js";

export const lifecycle = {
  async start() {
    return { name: "{{name}}", version: "0.1.0", description: "{{description}}.", extra: null };
  },

  async stop() {},
};

export const hooks = {
  async listHooks() {
    return [{ point: "message-sending", mode: "enforce", priority: 0 }];
  },

  async handleEvent({ point, eventContext }, _context) {
    if (point !== "message-sending") throw { code: "not-found", message: "this point is not handled" };
    const setting = config.get("signature");
    const signed = sign(JSON.parse(eventContext), setting ? JSON.parse(setting) : "Sent with {{name}}");
    return signed ? { tag: "replace", val: JSON.stringify(signed) } : { tag: "continue" };
  },
};
