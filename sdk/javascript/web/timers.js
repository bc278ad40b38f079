/** `setTimeout` and its like, over `wasi:clocks`: other calls of the instance go on meanwhile. */

import { describe } from "../src/exports/failure.js";
import * as log from "../src/services/log.js";
import { assertClock, wait } from "./clock.js";

/** The timers that are running, by their numbers. */
const running = new Set();
let last = 0;

/**
 * The longest single wait, in milliseconds. The host cannot be told that a timer was cleared, and a call lasts as long
 * as what it waits for: so long waits are made of short ones.
 */
const LONGEST_WAIT = 100;

async function sleep(id, milliseconds) {
  let rest = milliseconds;
  do {
    const part = Math.min(rest, LONGEST_WAIT);
    await wait(part);
    rest -= part;
  } while (rest > 0 && running.has(id));
}

function start(milliseconds, then) {
  // The promise that waits is nobody's: what it fails with would be lost.
  assertClock();
  const id = ++last;
  running.add(id);
  const delay = Math.max(0, Number(milliseconds) || 0);
  then(id, delay);
  return id;
}

function run(callback, args) {
  try {
    const returned = callback(...args);
    // What goes wrong after the callback has returned is nobody else's to handle.
    returned?.then?.(undefined, uncaught);
  } catch (thrown) {
    uncaught(thrown);
  }
}

function uncaught(thrown) {
  log.error(`a timer's function failed: ${describe(thrown).stack}`);
}

/** Calls a function after so many milliseconds; `clearTimeout` with the number that it returns prevents that. */
export function setTimeout(callback, milliseconds, ...args) {
  if (typeof callback !== "function") throw new TypeError("`setTimeout` takes a function");
  return start(milliseconds, async (id, delay) => {
    await sleep(id, delay);
    if (running.delete(id)) run(callback, args);
  });
}

/** Calls a function every so many milliseconds. */
export function setInterval(callback, milliseconds, ...args) {
  if (typeof callback !== "function") throw new TypeError("`setInterval` takes a function");
  return start(milliseconds, async (id, delay) => {
    for (;;) {
      await sleep(id, Math.max(1, delay));
      if (!running.has(id)) return;
      run(callback, args);
    }
  });
}

/** Clears a timer. One that there is not is no error. */
export function clearTimeout(id) {
  running.delete(id);
}

export { clearTimeout as clearInterval };
