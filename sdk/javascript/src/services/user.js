/** Questions to the user. The manifest asks for them with `user = ["ask"]`, and for pages with `"ask-url"`. */

import { callLater, requested } from "../connection.js";
import { objectSchema } from "../schema.js";

/**
 * Has the user fill in a form.
 *
 * @param {string} message What is asked and why.
 * @param {object} fields The properties of the form by their names, or its JSON Schema: texts, numbers, truth values and
 *   choices. No field asks for a secret.
 * @returns {Promise<{ answer: "accepted", content: object } | { answer: "declined" } | { answer: "cancelled" }>}
 * @throws {TenonError} `denied` where it is not granted or there is no user, `invalid-input` where the fields are no form.
 */
export function ask(message, fields = {}) {
  return callLater("user.ask", async () => {
    const user = requested("tenon:plugin/user", "user", ["ask"]);
    const { schema } = objectSchema(fields);
    const { tag, val } = await user.ask({ message, schema: JSON.stringify(schema), extra: null });
    return tag === "accepted" ? { answer: "accepted", content: JSON.parse(val) } : { answer: tag };
  });
}

/**
 * Asks the user to open a page: where a secret is typed in, or something is paid for. That it was opened does not mean
 * that anything was done there.
 *
 * @param {string} message What the page is for.
 * @param {string} url
 * @param {{ id?: string }} [options] A name for this request, unique in the plugin.
 * @returns {Promise<"accepted" | "declined" | "cancelled">}
 * @throws {TenonError} `denied` where it is not granted or there is no user.
 */
export function askUrl(message, url, { id } = {}) {
  return callLater("user.askUrl", () => {
    const user = requested("tenon:plugin/user", "user", ["ask-url"]);
    return user.askUrl({ message, url: String(url), id: id ?? null, extra: null });
  });
}
