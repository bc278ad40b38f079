/** The interface `hooks`. */

import { TenonError } from "../errors.js";
import { registry } from "../registry.js";
import { toOutcome } from "../kinds/hook.js";
import { handled } from "./failure.js";
import { parse, serve } from "./serve.js";

export const hooks = {
  async listHooks() {
    const points = new Map();
    for (const { key, priority, audit } of registry.hooks) {
      const priorities = [priority, ...(points.has(key) ? [points.get(key).priority] : [])];
      points.set(key, { point: key, mode: audit ? "audit" : "enforce", priority: Math.max(...priorities) });
    }
    return [...points.values()];
  },

  async handleEvent({ point, eventContext }, context) {
    return serve(`hook ${JSON.stringify(point)}`, context, (call) => handle(point, eventContext, call, registry.hooks.filter(({ key }) => key === point)));
  },
};

/** Has the handlers of a point decide, in the order of their priorities; the first veto ends that. */
export async function handle(point, json, call, handlers) {
  if (handlers.length === 0) throw new TenonError("not-found", `this plugin does not handle ${point}`);
  let outcome = { tag: "continue" };
  let text = json;
  for (const { handler, location } of [...handlers].sort((one, other) => other.priority - one.priority)) {
    const context = parse("members of the context", text);
    const before = JSON.stringify(context);
    const decided = await handled({ location }, () => handler(context, call, point), (value) => toOutcome(point, before, context, value));
    if (decided.outcome.tag === "veto") return decided.outcome;
    if (decided.outcome.tag === "replace") {
      outcome = decided.outcome;
      text = outcome.val;
    }
  }
  return outcome;
}
