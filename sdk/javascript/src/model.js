/** What a language model is asked and what it answers: the contract's records, and the form that authors read and write. */

import { asBytes, asContent, fromBase64, fromBlock, toBlock } from "./content.js";
import { kindOf } from "./registry.js";

const ROLES = ["system", "user", "assistant", "tool"];

/** A text, a part, or an array of these, as parts of the contract. */
export function toParts(value) {
  return [value].flat().map(toPart);
}

function toPart(part) {
  if (typeof part === "string") return { tag: "text", val: part };
  switch (part?.type) {
    case "text":
      return { tag: "text", val: String(part.text) };
    case "image":
    case "audio": {
      const data = typeof part.data === "string" ? fromBase64(part.type, part.data) : asBytes(part.data);
      return { tag: part.type, val: { data, mimeType: part.mimeType } };
    }
    case "reasoning":
      return { tag: "reasoning", val: { text: part.text, signature: part.signature ?? null } };
    case "tool-call":
      return { tag: "tool-call", val: { id: part.id, name: part.name, arguments: asJson(part.arguments ?? {}) } };
    case "tool-call-result":
      return { tag: "tool-call-result", val: { id: part.id, content: [part.content ?? []].flat().map((each) => toBlock(asContent(each))), isError: part.isError ?? false } };
    case "other":
      return { tag: "other", val: JSON.stringify(part.value) };
    default:
      throw new TypeError(`a part of a message is ${part?.type ? `of the type ${JSON.stringify(part.type)}` : kindOf(part)} and has to be a string, or of the type "text", "image", "audio", "reasoning", "tool-call", "tool-call-result" or "other"`);
  }
}

/** A part of the contract as authors read it. */
export function fromPart({ tag, val }) {
  switch (tag) {
    case "text":
      return { type: tag, text: val };
    case "tool-call":
      return { type: tag, id: val.id, name: val.name, arguments: parsed(val.arguments) };
    case "tool-call-result":
      return { type: tag, id: val.id, content: val.content.map(fromBlock), isError: val.isError };
    case "reasoning":
      return { type: tag, text: val.text, ...(val.signature != null && { signature: val.signature }) };
    case "other":
      return { type: tag, value: parsed(val) };
    default:
      return { type: tag, ...val };
  }
}

const asJson = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** JSON as a value; a text that is none stays one, as a model may write it. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The texts of parts, one after the other. */
export function textOf(parts) {
  return parts.filter(({ type }) => type === "text").map(({ text }) => text).join("");
}

function toMessage(message) {
  if (typeof message === "string") return { role: "user", parts: toParts(message) };
  const { role = "user", content, parts = content } = message ?? {};
  if (!ROLES.includes(role)) throw new TypeError(`the role of a message is ${JSON.stringify(role)} and has to be one of ${ROLES.join(", ")}`);
  return { role, parts: toParts(parts ?? []) };
}

const schema = (value) => (value === undefined ? null : asJson(value.toJSONSchema?.() ?? value));

/** A request as authors write it, or just a prompt, as the contract's record. */
export function toRequest(request) {
  if (typeof request === "string") return toRequest({ prompt: request });
  const { model = "default", system, prompt, messages = [], tools = [], toolChoice = "auto", maxTokens, temperature, topP, stopSequences = [], seed, responseSchema, extra } = request;
  const said = messages.map(toMessage);
  if (system !== undefined) said.unshift({ role: "system", parts: toParts(system) });
  if (prompt !== undefined) said.push({ role: "user", parts: toParts(prompt) });
  return {
    model,
    messages: said,
    tools: tools.map(({ name, description, inputSchema, input }) => ({ name, description, inputSchema: asJson(inputSchema ?? { type: "object", properties: input ?? {} }) })),
    toolChoice: ["auto", "none", "required"].includes(toolChoice) ? { tag: toolChoice } : { tag: "named", val: toolChoice.name ?? toolChoice },
    sampling: { maxTokens: maxTokens ?? null, temperature: temperature ?? null, topP: topP ?? null, stopSequences, seed: seed ?? null },
    responseSchema: schema(responseSchema),
    extra: extra === undefined ? null : JSON.stringify(extra),
  };
}

/** The contract's request as a provider reads it. */
export function fromRequest({ model, messages, tools, toolChoice, sampling, responseSchema, extra }) {
  const present = Object.fromEntries(Object.entries(sampling).filter(([, value]) => value !== null));
  return {
    model,
    messages: messages.map(({ role, parts }) => {
      const all = parts.map(fromPart);
      return { role, parts: all, text: textOf(all) };
    }),
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema: JSON.parse(inputSchema) })),
    toolChoice: toolChoice.tag === "named" ? { name: toolChoice.val } : toolChoice.tag,
    ...present,
    ...(responseSchema != null && { responseSchema: JSON.parse(responseSchema) }),
    ...(extra != null && { extra: JSON.parse(extra) }),
  };
}

const STOP_REASONS = ["end-turn", "max-tokens", "stop-sequence", "tool-use", "refusal"];

/** How an answer ended and what it took, as the contract's record. */
export function toSummary({ model, stopReason = "end-turn", usage = {}, extra } = {}, asked) {
  return {
    model: model ?? asked,
    stopReason: STOP_REASONS.includes(stopReason) ? { tag: stopReason } : { tag: "other", val: String(stopReason) },
    usage: { input: usage.input ?? 0, output: usage.output ?? 0, cachedInput: usage.cachedInput ?? 0, reasoning: usage.reasoning ?? 0 },
    extra: extra === undefined ? null : JSON.stringify(extra),
  };
}

/** An answer as a provider writes it: a string, parts, or `{ text | parts, stopReason, usage, model, extra }`. */
export function toCompletion(answer, asked) {
  if (typeof answer === "string" || Array.isArray(answer)) return { parts: toParts(answer), summary: toSummary({}, asked) };
  if (answer === null || typeof answer !== "object") throw new TypeError(`the provider answered with ${kindOf(answer)} and has to answer with a string, parts, or \`{ text, usage }\``);
  const { text, parts = text ?? [], ...summary } = answer;
  return { parts: toParts(parts), summary: toSummary(summary, asked) };
}

/** The contract's answer as authors read it. */
export function fromCompletion({ parts, summary: { model, stopReason, usage, extra } }) {
  const all = parts.map(fromPart);
  return {
    text: textOf(all),
    parts: all,
    model,
    stopReason: stopReason.tag === "other" ? stopReason.val : stopReason.tag,
    usage,
    ...(extra != null && { extra: JSON.parse(extra) }),
  };
}

/** A piece of an answer: a string is more text. */
export function toDelta(piece) {
  if (typeof piece === "string") return { tag: "text", val: piece };
  switch (piece?.type) {
    case "text":
    case "reasoning":
      return { tag: piece.type, val: piece.text };
    case "tool-call-start":
      return { tag: piece.type, val: { index: piece.index, id: piece.id, name: piece.name } };
    case "tool-call-arguments":
      return { tag: piece.type, val: { index: piece.index, fragment: piece.fragment } };
    default:
      throw new TypeError(`the provider wrote ${kindOf(piece)} to its stream and has to write strings, or objects of the type "text", "reasoning", "tool-call-start" or "tool-call-arguments"`);
  }
}

/** The parts that deltas make together. */
export function joined(deltas) {
  const parts = [];
  const calls = new Map();
  for (const { tag, val } of deltas) {
    const last = parts.at(-1);
    if (tag === "tool-call-start") {
      const call = { tag: "tool-call", val: { id: val.id, name: val.name, arguments: "" } };
      calls.set(val.index, call);
      parts.push(call);
    } else if (tag === "tool-call-arguments") {
      calls.get(val.index).val.arguments += val.fragment;
    } else if (tag === "text" && last?.tag === "text") last.val += val;
    else if (tag === "reasoning" && last?.tag === "reasoning") last.val.text += val;
    else parts.push(tag === "text" ? { tag, val } : { tag, val: { text: val, signature: null } });
  }
  return parts;
}
