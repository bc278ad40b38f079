/** `performance.now`, over `wasi:clocks`. */

import { now } from "./clock.js";

export const performance = {
  now,
  get timeOrigin() {
    return Date.now() - now();
  },
  toJSON() {
    return { timeOrigin: this.timeOrigin };
  },
};
