/** `AbortController` and `AbortSignal`. */

import { Event, EventTarget } from "./events.js";

/** Aborts a signal. */
export let abort;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason;
  onabort = null;

  get aborted() {
    return this.#aborted;
  }

  get reason() {
    return this.#reason;
  }

  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  static abort(reason) {
    const signal = new AbortSignal();
    abort(signal, reason);
    return signal;
  }

  static any(signals) {
    const all = [...signals];
    const signal = new AbortSignal();
    const aborted = all.find((each) => each.aborted);
    if (aborted) abort(signal, aborted.reason);
    else for (const each of all) each.addEventListener("abort", () => abort(signal, each.reason), { once: true });
    return signal;
  }

  static {
    abort = (signal, reason = new DOMException("the operation was aborted", "AbortError")) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason;
      signal.dispatchEvent(new Event("abort"));
    };
  }
}

export class AbortController {
  signal = new AbortSignal();

  abort(reason) {
    abort(this.signal, reason);
  }
}
