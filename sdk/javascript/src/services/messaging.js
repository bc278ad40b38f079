/** Messages that the host sends. The manifest names channels with `messaging = ["ops"]`; `*` is any, and the user. */

import { callLater, requested } from "../connection.js";

/**
 * Sends a message.
 *
 * @param {string | { text: string, channel?: string, extra?: object }} message Without a channel it is for the user at
 *   hand. `extra` is what else the channel understands.
 * @throws {TenonError} `denied` for a channel that is not granted, `not-found` for one that does not exist.
 */
export function send(message) {
  return callLater("messaging.send", async () => {
    const { text, channel, extra } = typeof message === "string" ? { text: message } : message;
    const messaging = requested("tenon:plugin/messaging", "messaging", [channel ?? "*"]);
    await messaging.sendMessage({ channel: channel ?? null, text, extra: extra === undefined ? null : JSON.stringify(extra) });
  });
}
