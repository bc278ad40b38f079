/** `Event`, `CustomEvent` and `EventTarget`, without a tree of targets. */

export class Event {
  #stopped = false;
  #prevented = false;

  constructor(type, { cancelable = false, bubbles = false } = {}) {
    Object.assign(this, { type: String(type), cancelable, bubbles, target: null, currentTarget: null, timeStamp: Date.now() });
  }

  get defaultPrevented() {
    return this.#prevented;
  }

  preventDefault() {
    if (this.cancelable) this.#prevented = true;
  }

  stopPropagation() {}

  stopImmediatePropagation() {
    this.#stopped = true;
  }

  /** Whether later listeners are not called any more. */
  static isStopped(event) {
    return event.#stopped;
  }
}

export class CustomEvent extends Event {
  constructor(type, { detail = null, ...options } = {}) {
    super(type, options);
    this.detail = detail;
  }
}

export class EventTarget {
  #listeners = new Map();

  addEventListener(type, callback, options = {}) {
    if (!callback) return;
    const { once = false, signal } = typeof options === "object" ? options : {};
    if (signal?.aborted) return;
    const listeners = this.#listeners.get(type) ?? [];
    if (listeners.some((known) => known.callback === callback)) return;
    this.#listeners.set(type, [...listeners, { callback, once }]);
    signal?.addEventListener("abort", () => this.removeEventListener(type, callback));
  }

  removeEventListener(type, callback) {
    const listeners = this.#listeners.get(type) ?? [];
    this.#listeners.set(type, listeners.filter((known) => known.callback !== callback));
  }

  dispatchEvent(event) {
    event.target = event.currentTarget = this;
    const handler = this[`on${event.type}`];
    if (typeof handler === "function") handler.call(this, event);
    for (const { callback, once } of this.#listeners.get(event.type) ?? []) {
      if (Event.isStopped(event)) break;
      if (once) this.removeEventListener(event.type, callback);
      if (typeof callback === "function") callback.call(this, event);
      else callback.handleEvent(event);
    }
    return !event.defaultPrevented;
  }
}
