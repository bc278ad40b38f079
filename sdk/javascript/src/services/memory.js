/** What the host remembers. The manifest asks for it with `memory = ["search"]`. */

import { callLater, requested } from "../connection.js";

/**
 * Searches the host's memory, best match first.
 *
 * @param {string} query
 * @param {{ limit?: number }} [options] The most matches, 10 unless it says otherwise; the host may find fewer.
 * @returns {Promise<{ text: string, score: number, source?: string }[]>} Scores are from 0 to 1.
 * @throws {TenonError} `denied` where it is not granted.
 */
export function search(query, { limit = 10 } = {}) {
  return callLater("memory.search", async () => {
    const found = await requested("tenon:plugin/memory", "memory").searchMemory(query, limit);
    return found.map(({ text, score, source }) => ({ text, score, ...(source != null && { source }) }));
  });
}
