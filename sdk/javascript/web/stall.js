/** Finds calls that wait for a promise which nothing resolves: without this, the host could only say that they trapped. */

import { TenonError } from "../src/errors.js";
import { watchCalls } from "../src/exports/serve.js";
import { isAnythingAwaited, turn } from "./clock.js";

/** How long until it is looked again, in milliseconds, where something is waited for. */
const INTERVAL = 50;

watchCalls(async (state, stalled) => {
  while (!state.isOver) {
    // After a turn, everything that can go on without the host has gone on.
    await turn(0.001);
    if (state.isOver) return;
    if (!isAnythingAwaited()) return stalled(new TenonError("failed", "the call waits for a promise that nothing resolves: look for a `new Promise` whose `resolve` is never called"));
    await turn(INTERVAL);
  }
});
