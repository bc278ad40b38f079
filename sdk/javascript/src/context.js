/** What a function is told about the call that it serves. */

import { host } from "./connection.js";
import { TenonError } from "./errors.js";

/** The calls that are being served, by their ids. */
const running = new Map();

/**
 * Has a function called when a call is cancelled. Where calls share an instance, the build puts in its place what looks
 * after that; elsewhere none is cancelled.
 */
let watch = () => undefined;

/** Sets what looks after the cancellation of calls. */
export function watchWith(watcher) {
  watch = watcher;
}

/** The call at hand: the second argument of handlers. */
export class Context {
  #record;
  #abort;
  #isCancelled = false;

  constructor(record) {
    this.#record = record;
  }

  /** Names this call among all calls of the host. */
  get callId() {
    return this.#record.callId;
  }

  /** The agent on whose behalf the call is made, where there is one. */
  get agentId() {
    return this.#record.agentId ?? undefined;
  }

  /** The conversation or session that the call belongs to, where there is one. */
  get sessionId() {
    return this.#record.sessionId ?? undefined;
  }

  /** The W3C Trace Context `traceparent` to pass on with requests. */
  get traceparent() {
    return this.#record.traceparent ?? undefined;
  }

  /** How many milliseconds were left when the call was handed over, where it has a deadline. */
  get timeLeft() {
    return this.#record.timeLeft ?? undefined;
  }

  /** What else the host says of the call. */
  get extra() {
    return this.#record.extra == null ? {} : JSON.parse(this.#record.extra);
  }

  /** Whether the host asked for the call to end. */
  get isCancelled() {
    return this.#isCancelled;
  }

  /** Aborts when the host asks for the call to end: pass it to `fetch`. */
  get signal() {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#isCancelled) this.#abort.abort(gaveUp());
      else watch(this, () => this.#abort.abort(gaveUp()));
    }
    return this.#abort.signal;
  }

  /**
   * Tells whoever waits how far the call has come.
   *
   * @param {number} progress Grows with each report, and reaches `total` at the end.
   * @param {number} [total]
   * @param {string} [message]
   */
  progress(progress, total, message) {
    host()?.["tenon:plugin/notify"]?.progress(this.callId, progress, total ?? null, message ?? null);
  }

  /** Throws if the host asked for the call to end: for loops that compute for long. */
  throwIfCancelled() {
    if (this.#isCancelled) throw gaveUp();
  }

  /** Asks for the call to end. */
  cancel() {
    this.#isCancelled = true;
  }
}

const gaveUp = () => new TenonError("cancelled", "the caller gave up");

/** A context for calls without a host: of tests that call handlers as functions. */
export function detached() {
  return new Context({ callId: "test" });
}

/** Serves a call with its context, so that the host can cancel it. */
export async function within(record, serve) {
  const context = new Context(record);
  running.set(record.callId, context);
  try {
    return await serve(context);
  } finally {
    running.delete(record.callId);
  }
}

/** Whether no call is being served. */
export function isIdle() {
  return running.size === 0;
}

/** Whether a call is being served. */
export function isRunning(context) {
  return running.get(context.callId) === context;
}

/** Asks for the call of this id to end. One that there is not has ended meanwhile. */
export function cancel(callId) {
  running.get(callId)?.cancel();
}
