/** `AbortSignal.timeout`, apart from `AbortSignal` so that the clock is imported only by plugins that use it. */

import { AbortSignal, abort } from "./abort.js";
import { setTimeout } from "./timers.js";

/** A signal that aborts after so many milliseconds. */
export function timeoutSignal(milliseconds) {
  const signal = new AbortSignal();
  setTimeout(() => abort(signal, new DOMException(`it took longer than ${milliseconds} ms`, "TimeoutError")), milliseconds);
  return signal;
}
