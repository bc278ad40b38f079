/** The host's other tools. The manifest names them with `tools = ["text_tools__*"]`. */

import { callLater, requested } from "../connection.js";
import { fromBlock, plainText, withoutNull } from "../content.js";

/** The tools that the plugin may call, under the names that it calls them by. */
export function list() {
  return callLater("tools.list", async () => {
    const all = await requested("tenon:plugin/host-tools", "tools").listTools();
    return all.map(({ inputSchema, outputSchema, annotations, extra: _, ...about }) => ({
      ...withoutNull(about),
      inputSchema: JSON.parse(inputSchema),
      ...(outputSchema != null && { outputSchema: JSON.parse(outputSchema) }),
      annotations: withoutNull(annotations),
    }));
  });
}

/**
 * Calls a tool. That the tool could not do it is no error, but a result with `isError`.
 *
 * @param {string} name
 * @param {object} [args]
 * @returns {Promise<{ text: string, content: object[], structured: unknown, isError: boolean }>} `text` has the texts of
 *   the content.
 * @throws {TenonError} `denied` for a tool that is not granted, and what the tool fails with.
 */
export function call(name, args = {}) {
  return callLater("tools.call", async () => {
    const tools = requested("tenon:plugin/host-tools", "tools", [name]);
    const { content, structured, isError } = await tools.callTool(name, JSON.stringify(args));
    const blocks = content.map(fromBlock);
    return { text: plainText(blocks), content: blocks, structured: structured == null ? undefined : JSON.parse(structured), isError };
  });
}
