/** `crypto` and `Math.random`, over `wasi:random`. */

import { host } from "../src/connection.js";
import { asBytes } from "../src/content.js";

/** The most bytes of `getRandomValues`. */
const MOST_BYTES = 65536;

function bytes(count) {
  const random = host()?.["wasi:random/random"];
  if (!random) throw new Error("there is no randomness while the plugin is built: draw it in a handler, and not where the file is loaded");
  const all = new Uint8Array(count);
  // The host may give fewer than were asked for.
  for (let at = 0; at < count; ) {
    const some = random.getRandomBytes(count - at);
    all.set(some, at);
    at += some.length;
  }
  return all;
}

export const crypto = {
  getRandomValues(array) {
    const view = ArrayBuffer.isView(array) ? asBytes(array) : undefined;
    if (!view || array instanceof Float32Array || array instanceof Float64Array) throw new DOMException("`getRandomValues` fills arrays of whole numbers", "TypeMismatchError");
    if (view.length > MOST_BYTES) throw new DOMException(`\`getRandomValues\` fills at most ${MOST_BYTES} bytes`, "QuotaExceededError");
    view.set(bytes(view.length));
    return array;
  },

  randomUUID() {
    const random = bytes(16);
    random[6] = (random[6] & 0x0f) | 0x40;
    random[8] = (random[8] & 0x3f) | 0x80;
    const digits = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join("-");
  },

  get subtle() {
    throw new Error("there is no `crypto.subtle` in a component: packages such as `@noble/hashes` and `@noble/curves` do the same");
  },
};

/** The state of xoshiro128**, once something was drawn. */
let state;

/** `Math.random`: the engine's own would give the same numbers in every instance. */
export function random() {
  if (!state) {
    const seed = bytes(16);
    state = new Uint32Array(seed.buffer, 0, 4).slice();
  }
  const next = () => {
    const [a, b, c, d] = state;
    const product = Math.imul(b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const e = c ^ a;
    const f = d ^ b;
    state = Uint32Array.of(a ^ f, b ^ e, e ^ (b << 9), (f << 11) | (f >>> 21));
    return result;
  };
  return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}
