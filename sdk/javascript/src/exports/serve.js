/** What serves each call of the host. */

import { TenonError } from "../errors.js";
import { isIdle, within } from "../context.js";
import { suggestion } from "../nearest.js";
import { toFailure, warnOfForgotten } from "./failure.js";

/** Looks after calls that go on. The build sets what does, as it needs a clock. */
let watch;

/** Sets what looks after calls: it gets their state, and a function that ends one with an error. */
export function watchCalls(watcher) {
  watch = watcher;
}

/** Awaits a handler, and gives up where it waits for nothing. */
function watched(work) {
  if (!watch) return work();
  return new Promise((resolve, reject) => {
    const state = { isOver: false };
    const end = (settle) => (value) => {
      state.isOver = true;
      settle(value);
    };
    work().then(end(resolve), end(reject));
    look(state, end(reject));
  });
}

/** How many turns of its own promises a handler gets before it is looked after: one that does not wait for the host is over. */
const TURNS = 20;

async function look(state, stalled) {
  for (let turn = 0; turn < TURNS && !state.isOver; turn++) await null;
  if (!state.isOver) await watch(state, stalled);
}

/**
 * Serves a call: gives it its context, and makes of what is thrown an error of the contract.
 *
 * @param {string} what What is called, for the log.
 * @param {object} record The context of the call.
 * @param {(context: Context) => Promise<unknown>} work
 */
export async function serve(what, record, work) {
  try {
    const result = await within(record, (context) => watched(async () => work(context)));
    // Of other calls that go on, promises may be awaited yet.
    if (isIdle()) warnOfForgotten(what);
    return result;
  } catch (thrown) {
    // A promise that nobody awaited is often why the handler failed.
    if (isIdle()) warnOfForgotten(what);
    throw toFailure(thrown, what);
  }
}

/** As `serve`, for what has no context. */
export async function answer(what, work) {
  try {
    return await watched(async () => work());
  } catch (thrown) {
    throw toFailure(thrown, what);
  }
}

/** The definition of a name. */
export function find(entries, kind, name) {
  const found = entries.find(({ key }) => key === name);
  if (!found) throw new TenonError("not-found", `this plugin has no ${kind} ${JSON.stringify(name)}: ${suggestion(name, entries.map(({ key }) => key))}`);
  return found;
}

/** Refuses a cursor: every listing has one page. */
export function onlyPage(cursor) {
  if (cursor !== null && cursor !== undefined) throw new TenonError("invalid-input", `there is no page ${JSON.stringify(cursor)}`);
}

/** JSON that the host passes. */
export function parse(what, text) {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw new TenonError("invalid-input", `the ${what} are no JSON: ${thrown.message}`);
  }
}
