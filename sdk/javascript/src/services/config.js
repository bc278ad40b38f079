/** The plugin's settings: `[settings]` of its manifest, and what the user's configuration puts in their place. */

import { always } from "../connection.js";

/**
 * A setting.
 *
 * @param {string} key
 * @param {unknown} [otherwise] What it is where nobody has set it.
 */
export function get(key, otherwise) {
  const value = always("tenon:plugin/config").get(key);
  return value == null ? otherwise : JSON.parse(value);
}

/** All settings, as an object. */
export function all() {
  return JSON.parse(always("tenon:plugin/config").all());
}
