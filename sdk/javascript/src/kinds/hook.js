/** Hooks: a plugin's say at moments of the host's work. */

import { callerOf } from "../location.js";
import * as field from "../fields.js";
import { suggestion } from "../nearest.js";
import { POINTS, isCustom } from "../points.js";
import { checkFields, kindOf, register, registry, report } from "../registry.js";
import { broken, callable } from "./definition.js";

/** A decision to stop what was about to happen. */
export class Veto {
  constructor(reason) {
    this.reason = reason;
  }
}

/**
 * Stops what was about to happen, when a hook returns it.
 *
 * @param {string} reason Why, for people.
 */
export function veto(reason) {
  if (typeof reason !== "string" || !reason.trim()) throw new TypeError("a veto needs a reason, for people: `veto(\"…\")`");
  return new Veto(reason);
}

const OPTIONS = { priority: field.priority, audit: field.flag };

/**
 * Defines a handler of one or several points.
 *
 * It gets the context of the point, and may change it in place, return another one in its place, return `veto("why")`,
 * or return nothing to let it pass.
 *
 * @param {string | string[]} points Such as `before-tool-call`, or `acme:deploy` for one of a host's own.
 * @param {{ priority?: number, audit?: boolean }} [options] Handlers of a greater priority run earlier; the usual one
 *   is 0. With `audit`, the host records the outcome and does not honour it.
 * @param {(context: object, call: Context, point: string) => unknown} handler
 */
export function hook(points, options, handler) {
  const location = callerOf(hook);
  const all = [points].flat();
  const what = typeof all[0] === "string" ? `hook ${JSON.stringify(all[0])}` : "a hook";
  if (typeof options === "function" && handler === undefined) [options, handler] = [{}, options];
  if (!checkPoints(all, { what, location })) return broken(what);
  if (typeof handler !== "function") {
    report({ what, problem: `its handler is ${kindOf(handler)} and has to be a function`, hint: `write \`hook(${JSON.stringify(all[0])}, (context) => { … })\``, location });
    return broken(what);
  }
  if (!checkFields(options, OPTIONS, { what, location })) return broken(what);
  const { priority = 0, audit = false } = options;
  for (const point of all) {
    const other = registry.hooks.find(({ key }) => key === point);
    if (other && other.audit !== audit) {
      report({ what: `hook ${JSON.stringify(point)}`, field: "audit", problem: `another handler of this point${other.location ? `, at ${other.location},` : ""} ${other.audit ? "audits" : "does not audit"}: all of one point do, or none`, hint: "write `audit: true` for each of them, or for none", location });
      continue;
    }
    register("hooks", { key: point, what: `hook ${JSON.stringify(point)}`, location, priority, audit, handler }, what);
  }
  const entry = { key: all[0], what, location, points: all, handler };
  return callable(`hook ${all.join(", ")}`, entry, (context, call) => handler(context, call, all[0]));
}

function checkPoints(points, { what, location }) {
  let sound = points.length > 0;
  const hint = 'write `hook("before-tool-call", (context) => { … })`';
  if (!sound) report({ what, problem: "it has no point", hint, location });
  for (const point of points) {
    if (typeof point !== "string") {
      report({ what, problem: `its point is ${kindOf(point)} and has to be a string such as "before-tool-call"`, hint, location });
      sound = false;
    } else if (!Object.hasOwn(POINTS, point) && !isCustom(point)) {
      report({ what, problem: `there is no such point: ${suggestion(point, Object.keys(POINTS))}`, hint: "a point of a host's own has a prefix and a colon: `acme:deploy`", location });
      sound = false;
    }
  }
  return sound;
}

/**
 * What a handler decided.
 *
 * @returns {{ outcome: { tag: string, val?: string }, context: object }} The outcome, and the context for the next handler.
 */
export function toOutcome(point, before, context, returned) {
  if (returned instanceof Veto) {
    if (POINTS[point] === false) throw new TypeError(`the point ${point} reports what has happened, and allows no veto`);
    return { outcome: { tag: "veto", val: returned.reason }, context };
  }
  if (returned !== undefined && returned !== null && (typeof returned !== "object" || Array.isArray(returned))) {
    throw new TypeError(`the handler returned ${kindOf(returned)}: return the context, \`veto("why")\` or nothing`);
  }
  if (returned && Object.keys(returned).join() === "veto" && !("veto" in context)) {
    throw new TypeError("the handler returned `{ veto: … }`, which would take the place of the context: return `veto(\"why\")`");
  }
  const after = returned ?? context;
  const text = JSON.stringify(after);
  return { outcome: text === before ? { tag: "continue" } : { tag: "replace", val: text }, context: after };
}
