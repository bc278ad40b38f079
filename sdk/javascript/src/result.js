/** What a tool's handler returned, as the contract's result. */

import { Content, ToolResult, asBytes, asContent, toBlock } from "./content.js";
import { kindOf } from "./registry.js";
import { problems } from "./validate.js";

/**
 * @param {unknown} value What the handler returned, awaited.
 * @param {{ output?: object }} tool With `output`, the JSON Schema of structured content.
 * @returns {object} The record `tool-result`.
 * @throws {TypeError} Where it is nothing that a tool can answer.
 */
export function toToolResult(value, { output } = {}) {
  if (value instanceof ToolResult) return ofWhole(value, output);
  if (output && !(value instanceof Content)) return ofStructured(value, output);
  if (value === undefined || value === null) return answer([]);
  const content = asContent(value);
  if (content) return answer([content]);
  if (typeof value === "number") refuse(value);
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return answer([asContent(String(value))]);
  if (Array.isArray(value)) return ofArray(value);
  if (isOfMcp(value)) throw new TypeError("the result is written as MCP writes it: return its text or content itself, or write `toolResult({ content: … })`");
  refuse(value);
  return ofStructured(value);
}

/** Whether a value is a whole result of MCP: what it says would become JSON for the model. */
function isOfMcp({ content, ...others }) {
  return Array.isArray(content) && content.length > 0 && content.every((item) => typeof item?.type === "string") && Object.keys(others).every((name) => ["structuredContent", "isError", "_meta"].includes(name));
}

function answer(content, structured = null) {
  return { content: content.map(toBlock), structured, isError: false, extra: null };
}

function ofArray(values) {
  const contents = values.map(asContent);
  if (contents.every(Boolean)) return answer(contents);
  const at = values.findIndex((value) => value instanceof Content);
  if (at >= 0) {
    const other = contents.indexOf(undefined);
    throw new TypeError(`item ${other} of the result is ${kindOf(values[other])} and has to be content or a string, as item ${at} is`);
  }
  refuse(values);
  return answer([asContent(json(values))]);
}

function ofStructured(value, output) {
  refuse(value);
  if (output && value === undefined) throw new TypeError("the result is undefined, and `output` says what it has to be: write `return` in the handler");
  if (output) {
    const found = problems(JSON.parse(json(value ?? null)), output);
    if (found.length > 0) throw new TypeError(`the result is not what \`output\` says: ${found.join("; ")}`);
  }
  const text = json(value);
  return answer([asContent(text)], text);
}

function ofWhole({ content, structured, isError, meta }, output) {
  const items = content === undefined || content === null ? [] : [content].flat();
  const contents = items.map((item, index) => {
    const block = asContent(item);
    if (!block) throw new TypeError(`item ${index} of the result's \`content\` is ${kindOf(item)} and has to be content or a string`);
    return block;
  });
  if (structured === undefined) return { ...answer(contents), isError, extra: meta ? json(meta) : null };
  const whole = ofStructured(structured, isError ? undefined : output);
  return {
    ...(contents.length > 0 ? answer(contents, whole.structured) : whole),
    isError,
    extra: meta ? json(meta) : null,
  };
}

/** Refuses what JSON would silently turn into something else. */
function refuse(value, path = "the result", seen = new Set()) {
  const complain = (remedy) => {
    throw new TypeError(`${path} is ${kindOf(value)}: ${remedy}`);
  };
  if (typeof value === "function") complain("a tool answers with text, content or JSON; call it first");
  if (typeof value === "symbol") complain("a tool answers with text, content or JSON");
  if (typeof value === "bigint") complain("JSON has none; write `Number(…)` or `String(…)`");
  if (typeof value === "number" && !Number.isFinite(value)) complain("JSON has no such number; return `null`, or throw a `ToolError` that says why");
  if (value instanceof Date && Number.isNaN(value.getTime())) complain("it is no valid date; look at what it was made of");
  if (value === null || typeof value !== "object" || typeof value.toJSON === "function") return;
  if (typeof value.then === "function") complain("write `await` before it");
  if (typeof value.arrayBuffer === "function") complain("return what is in it: `await response.text()` or `await response.json()`");
  if (asBytes(value)) complain("return `image(…)`, `audio(…)` or `embedded(…)`, or text");
  if (value instanceof Map) complain("write `Object.fromEntries(…)`");
  if (value instanceof Set) complain("write `[...…]`");
  if (value instanceof Error) complain("throw it, or return its message");
  if (value instanceof RegExp) complain("return its `source`");
  if (seen.has(value)) complain("it contains itself, which JSON cannot say; leave that member out");
  if (isOpaque(value)) complain("none of its members are public, so JSON would say `{}`; return an object of what it has, or give it a method `toJSON`");
  seen.add(value);
  for (const [name, member] of Object.entries(value)) {
    refuse(member, Array.isArray(value) ? `${path}[${name}]` : `${path === "the result" ? "" : `${path}.`}${name}`, seen);
  }
  seen.delete(value);
}

/** Whether JSON says nothing of an instance of a class. */
function isOpaque(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype !== null && prototype !== Object.prototype && !Array.isArray(value) && Object.keys(value).length === 0 && Object.getPrototypeOf(prototype) !== null;
}

function json(value) {
  return JSON.stringify(value);
}

/** The result of a tool that could not do what was asked. */
export function toErrorResult({ message, structured }) {
  return { ...answer([asContent(message)], structured === undefined ? null : json(structured)), isError: true };
}
