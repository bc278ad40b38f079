/** The interface `tools`. */

import { TenonError, ToolError } from "../errors.js";
import { registry } from "../registry.js";
import { toToolResult, toErrorResult } from "../result.js";
import { problems, withDefaults } from "../validate.js";
import { handled } from "./failure.js";
import { find, parse, serve } from "./serve.js";

export const tools = {
  async listTools() {
    return registry.tools.map(({ record }) => record());
  },

  async callTool(name, args, context) {
    return serve(`tool ${JSON.stringify(name)}`, context, (call) => callTool(find(registry.tools, "tool", name), args, call));
  },
};

/** Calls a tool with arguments that are JSON. */
export async function callTool(entry, args, context) {
  const given = await checked(entry, parse("arguments", args));
  try {
    return await handled(entry, () => entry.handler(given, context), (value) => toToolResult(value, entry));
  } catch (thrown) {
    if (!(thrown instanceof ToolError)) throw thrown;
    return toErrorResult(thrown);
  }
}

async function checked({ what, input, standard }, given) {
  const found = problems(given, input);
  if (found.length > 0) throw new TenonError("invalid-input", `${what}: ${found.join("; ")}`);
  if (!standard) return withDefaults(given, input);
  const { value, issues } = await standard.validate(given);
  if (!issues) return value;
  const said = issues.map(({ message, path }) => {
    const at = (path ?? []).map((part) => part?.key ?? part).join(".");
    return at ? `\`${at}\`: ${message}` : message;
  });
  throw new TenonError("invalid-input", `${what}: ${said.join("; ")}`);
}
