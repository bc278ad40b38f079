/** Secrets that the user keeps for the plugin. The manifest asks for them with `secrets = ["api-key"]`. */

import { call, requested } from "../connection.js";

/**
 * The value of a secret. The host masks it wherever it shows what the plugin says.
 *
 * @param {string} name
 * @throws {TenonError} `denied` for one that is not granted, `not-found` for one that nobody has set.
 */
export function get(name) {
  const secrets = requested("tenon:plugin/secrets", "secrets", [name]);
  return call(() => secrets.get(name));
}
