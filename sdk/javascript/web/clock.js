/** The monotonic clock, over `wasi:clocks`. */

import { host } from "../src/connection.js";

function clock() {
  const found = host()?.["wasi:clocks/monotonic-clock"];
  if (!found) throw new Error("there is no clock while the plugin is built: measure time and wait in a handler, and not where the file is loaded");
  return found;
}

/** Throws where there is no clock. */
export function assertClock() {
  clock();
}

let origin;

/** Milliseconds since the first call of this instance. */
export function now() {
  const nanoseconds = clock().now();
  origin ??= nanoseconds;
  return (nanoseconds - origin) / 1e6;
}

let waits = 0;

/** Waits for so many milliseconds. */
export async function wait(milliseconds) {
  waits++;
  try {
    await turn(milliseconds);
  } finally {
    waits--;
  }
}

/** Gives everything else its turn for so many milliseconds: as `wait`, for what waits for nothing itself. */
export function turn(milliseconds) {
  return clock().waitFor(Math.round(milliseconds * 1e6));
}

/** Whether anything waits for the host. */
export function isAnythingAwaited() {
  return waits > 0;
}
