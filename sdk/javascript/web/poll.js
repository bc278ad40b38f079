/** Waits for what `wasi:io` 0.2 knows as pollable, which has no `async` functions. */

import { host } from "../src/connection.js";
import { wait } from "./clock.js";

/** What calls wait for. */
const waiting = new Set();

/** The longest that the instance waits as a whole, in milliseconds: its timers and other calls have a turn after that. */
const LONGEST_BLOCK = 10;

/** A wait after which the host has given timers and other calls their turn, in milliseconds. */
const SHORTEST_WAIT = 0.001;

const dispose = Symbol.dispose ?? Symbol.for("dispose");

/** Gives a resource of the host back. */
export function drop(resource) {
  resource?.[dispose]?.();
}

/**
 * Waits until a pollable is ready.
 *
 * Each call of the host waits for its own: the toolchain takes what goes on after a wait for a part of the call that
 * waited. All pollables are looked at together, so that none holds the others up.
 *
 * @param {object} pollable
 * @param {AbortSignal} [signal] Ends the wait with its reason.
 */
export async function ready(pollable, signal) {
  const { poll } = host()["host:io/poll"];
  const clock = host()["host:clocks/monotonic-clock"];
  waiting.add(pollable);
  try {
    for (;;) {
      // Everything else that can go on does so first. A wait of no time at all would not let it.
      await wait(SHORTEST_WAIT);
      signal?.throwIfAborted();
      const all = [pollable, ...[...waiting].filter((other) => other !== pollable)];
      const timer = clock.subscribeDuration(LONGEST_BLOCK * 1e6);
      const isReady = poll([...all, timer]).includes(0);
      drop(timer);
      if (isReady) return;
    }
  } finally {
    waiting.delete(pollable);
    drop(pollable);
  }
}
