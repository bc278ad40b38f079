/** The state of a plugin, in the shape of `wasi:keyvalue`. */

import { decode, encode } from "../src/utf8.js";

const SCOPES = ["session", "project", "user"];

/** An error as the imports of a component throw them. */
function thrown(payload) {
  return Object.assign(new Error(payload.tag), { payload });
}

export class Keyvalue {
  #scopes = new Map();

  /** @param {string[] | Record<string, object>} [granted] The scopes that are granted, with what is in them. */
  constructor(granted) {
    const scopes = Array.isArray(granted) ? Object.fromEntries(granted.map((scope) => [scope, {}])) : (granted ?? {});
    for (const [scope, values] of Object.entries(scopes)) {
      if (!SCOPES.includes(scope)) throw new TypeError(`there is no scope ${JSON.stringify(scope)}; the scopes are ${SCOPES.join(", ")}`);
      this.#scopes.set(scope, new Map(Object.entries(values).map(([key, value]) => [key, encode(JSON.stringify(value))])));
    }
  }

  get isGranted() {
    return this.#scopes.size > 0;
  }

  values(scope = SCOPES.find((each) => this.#scopes.has(each))) {
    const kept = this.#scopes.get(scope) ?? new Map();
    return Object.fromEntries([...kept].map(([key, bytes]) => [key, JSON.parse(decode(bytes))]));
  }

  #open(name) {
    const scope = name === "default" || name === "" ? SCOPES.find((each) => this.#scopes.has(each)) : name;
    if (!SCOPES.includes(scope)) throw thrown({ tag: "no-such-store" });
    const kept = this.#scopes.get(scope);
    if (!kept) throw thrown({ tag: "access-denied" });
    return {
      kept,
      get: (key) => kept.get(key) ?? null,
      set: (key, value) => void kept.set(key, value.slice()),
      delete: (key) => void kept.delete(key),
      exists: (key) => kept.has(key),
      listKeys: () => ({ keys: [...kept.keys()].sort(), cursor: null }),
    };
  }

  /** `wasi:keyvalue/store` */
  get store() {
    return { open: (name) => this.#open(name) };
  }

  /** `wasi:keyvalue/atomics` */
  get atomics() {
    const remember = ({ kept }, key) => ({ kept, key, seen: kept.get(key) ?? null, current: () => kept.get(key) ?? null });
    return {
      Cas: { new: remember },
      increment({ kept }, key, by) {
        const text = kept.has(key) ? decode(kept.get(key)) : "0";
        if (!/^-?\d+$/.test(text)) throw thrown({ tag: "other", val: `the value of ${JSON.stringify(key)} is no number` });
        const sum = Number(text) + by;
        kept.set(key, encode(String(sum)));
        return sum;
      },
      swap(cas, value) {
        if ((cas.kept.get(cas.key) ?? null) !== cas.seen) throw thrown({ tag: "cas-failed", val: remember(cas, cas.key) });
        cas.kept.set(cas.key, value);
      },
    };
  }
}
