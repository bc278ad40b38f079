/**
 * What the plugin keeps between calls, reloads and restarts, as JSON. The manifest asks for it with
 * `state = ["project"]`, `"user"` or `"session"`.
 */

import { asBytes } from "../content.js";
import { requested } from "../connection.js";
import { TenonError } from "../errors.js";
import { decode, encode } from "../utf8.js";

/** The scopes, and the one that is granted; where several are, the narrowest. */
const SCOPES = ["session", "project", "user"];

/** How often an update is tried again that others were faster than. */
const MAX_ATTEMPTS = 100;

/** The state of a scope. */
class Bucket {
  #scope;

  constructor(scope) {
    this.#scope = scope;
  }

  #store(use) {
    const values = this.#scope === "default" ? undefined : [this.#scope];
    const store = requested("wasi:keyvalue/store", "state", values);
    return ofStore(this.#scope, () => use(store.open(this.#scope)));
  }

  #atomics() {
    return requested("wasi:keyvalue/atomics", "state");
  }

  /** The bytes of a key, or nothing. */
  getBytes(key) {
    return this.#store((bucket) => bucket.get(key)) ?? undefined;
  }

  /** The value of a key, or `otherwise` if it has none. */
  get(key, otherwise) {
    const kept = this.getBytes(key);
    return kept === undefined ? otherwise : read(key, kept);
  }

  /** Sets the bytes of a key. They are on the disk when this returns. */
  setBytes(key, bytes) {
    const kept = asBytes(bytes);
    if (!kept) throw new TypeError("`setBytes` takes a Uint8Array");
    this.#store((bucket) => bucket.set(key, kept));
  }

  /** Sets the value of a key. It is on the disk when this returns. */
  set(key, value) {
    const kept = written(key, value);
    this.#store((bucket) => bucket.set(key, kept));
  }

  /**
   * Sets the value of a key to what a function makes of it, and returns that. Where another call has changed the value
   * meanwhile, the function is called again with the new one.
   */
  update(key, change) {
    const atomics = this.#atomics();
    return this.#store((bucket) => {
      let seen = atomics.Cas.new(bucket, key);
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const kept = seen.current();
        const value = change(kept == null ? undefined : read(key, kept));
        if (typeof value?.then === "function") throw new TypeError("the function of `state.update` returned a promise: it changes a value at once, without `await`");
        const bytes = written(key, value);
        try {
          atomics.swap(seen, bytes);
          return value;
        } catch (thrown) {
          if (thrown.payload?.tag !== "cas-failed") throw thrown;
          // Another call was faster, and this is what it has written.
          seen = thrown.payload.val;
        }
      }
      throw new TenonError("unavailable", `others change the state of ${JSON.stringify(key)} all the time`);
    });
  }

  /** Adds to a whole number, which is 0 where it has no value, and returns the sum. */
  increment(key, by = 1) {
    if (!Number.isSafeInteger(by)) throw new TypeError(`\`increment\` adds whole numbers, and not ${by}`);
    const atomics = this.#atomics();
    return Number(this.#store((bucket) => atomics.increment(bucket, key, by)));
  }

  /** Whether a key has a value. */
  has(key) {
    return this.#store((bucket) => bucket.exists(key));
  }

  /** Removes a key. One that is not there is no error. */
  delete(key) {
    this.#store((bucket) => bucket.delete(key));
  }

  /** The keys, in the order of their bytes. */
  keys() {
    return this.#store((bucket) => {
      const keys = [];
      let cursor = null;
      do {
        const page = bucket.listKeys(cursor);
        keys.push(...page.keys);
        cursor = page.cursor ?? null;
      } while (cursor !== null);
      return keys;
    });
  }
}

/** The state of a scope: `session`, `project` or `user`. */
export function bucket(scope) {
  if (!SCOPES.includes(scope)) throw new TypeError(`there is no scope ${JSON.stringify(scope)}; the scopes are ${SCOPES.join(", ")}`);
  return new Bucket(scope);
}

const granted = new Bucket("default");

export const get = (key, otherwise) => granted.get(key, otherwise);
export const set = (key, value) => granted.set(key, value);
export const update = (key, change) => granted.update(key, change);
export const increment = (key, by) => granted.increment(key, by);
export const has = (key) => granted.has(key);
export const keys = () => granted.keys();
export const getBytes = (key) => granted.getBytes(key);
export const setBytes = (key, bytes) => granted.setBytes(key, bytes);
const remove = (key) => granted.delete(key);
export { remove as delete };

function read(key, kept) {
  try {
    return JSON.parse(decode(kept));
  } catch (thrown) {
    throw new TenonError("failed", `the state of ${JSON.stringify(key)} is no JSON: ${thrown.message}`);
  }
}

function written(key, value) {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`the state of ${JSON.stringify(key)} is set to ${typeof value}, which JSON cannot say; \`state.delete\` removes a key`);
  return encode(text);
}

/** Calls the store, whose errors become those of the contract. */
function ofStore(scope, operation) {
  try {
    return operation();
  } catch (thrown) {
    const problem = thrown.payload?.tag === "store-error" ? thrown.payload.val : thrown.payload;
    switch (problem?.tag) {
      case "access-denied":
        throw new TenonError("denied", `this state is not granted${scope === "default" ? "" : `; plugin.toml requests it with \`state = [${JSON.stringify(scope)}]\` under [capabilities]`}`);
      case "no-such-store":
        throw new TenonError("not-found", "there is no such state");
      case "other":
        throw new TenonError("failed", problem.val);
      default:
        throw thrown;
    }
  }
}
