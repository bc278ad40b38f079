/** What a tool answers and prompts say: content blocks. */

import { kindOf } from "./registry.js";

/** A content block, made by the functions below. */
export class Content {
  /** @param {object} body The variant `content` of the contract. @param {object} [meta] Members of MCP beside it. */
  constructor(body, meta) {
    this.body = body;
    this.meta = meta;
  }
}

/** A whole answer of a tool; see `toolResult`. */
export class ToolResult {
  constructor({ content = [], structured, isError = false, meta }) {
    Object.assign(this, { content, structured, isError, meta });
  }
}

const variant = (tag, val) => ({ tag, val });

/**
 * Plain text.
 *
 * @param {string} text
 * @param {object} [meta] Members of the block in MCP, such as `annotations`.
 */
export function text(text, meta) {
  return new Content(variant("text", String(text)), meta);
}

/**
 * An image.
 *
 * @param {Uint8Array | ArrayBuffer | string} data Its bytes, or their Base64.
 * @param {string} mimeType Such as `image/png`.
 * @param {object} [meta]
 */
export function image(data, mimeType, meta) {
  return new Content(variant("image", media("image", data, mimeType)), meta);
}

/** A sound; as `image`, with a type such as `audio/wav`. */
export function audio(data, mimeType, meta) {
  return new Content(variant("audio", media("audio", data, mimeType)), meta);
}

/**
 * A pointer to a resource that the reader may fetch.
 *
 * @param {{ uri: string, name?: string, title?: string, description?: string, mimeType?: string, size?: number }} link
 *   `size` is in bytes. Without a name, the URI is it.
 * @param {object} [meta]
 */
export function resourceLink(link, meta) {
  return new Content(variant("resource-link", toLink(link)), meta);
}

/**
 * A resource, carried along.
 *
 * @param {string} uri
 * @param {string | Uint8Array} contents
 * @param {{ mimeType?: string, meta?: object }} [options]
 */
export function embedded(uri, contents, { mimeType, meta } = {}) {
  return new Content(variant("resource", toContents(uri, contents, mimeType)), meta);
}

/**
 * A whole answer of a tool, for what other results do not say: structured content beside other content, or `_meta`.
 *
 * @param {{ content?: unknown, structured?: object, isError?: boolean, meta?: object }} result
 */
export function toolResult(result) {
  return new ToolResult(result);
}

/** The link of the contract. */
export function toLink({ uri, name = uri, title = null, description = null, mimeType = null, size = null }) {
  if (typeof uri !== "string") throw new TypeError(`the \`uri\` of a link is ${kindOf(uri)} and has to be a string`);
  return { uri, name, title, description, mimeType, size };
}

/** The contents of a resource in the contract's form. */
export function toContents(uri, contents, mimeType) {
  const bytes = asBytes(contents);
  const body = bytes ? variant("blob", bytes) : variant("text", String(contents));
  return { uri, mimeType: mimeType ?? null, body, extra: null };
}

/** The bytes of a buffer or view; nothing of anything else. */
export function asBytes(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return undefined;
}

function media(what, data, mimeType) {
  if (typeof mimeType !== "string" || !mimeType.includes("/")) {
    throw new TypeError(`the media type of an ${what} is ${JSON.stringify(mimeType)} and has to be one such as "${what}/…"`);
  }
  const bytes = typeof data === "string" ? fromBase64(what, data) : asBytes(data);
  if (!bytes) throw new TypeError(`the data of an ${what} is ${kindOf(data)} and has to be a Uint8Array or Base64`);
  return { data: bytes, mimeType };
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The bytes of Base64, with or without `=` at its end. */
export function fromBase64(what, encoded) {
  const letters = encoded.replace(/[\s=]/g, "").replace(/-/g, "+").replace(/_/g, "/");
  const bytes = new Uint8Array(Math.floor((letters.length * 3) / 4));
  let bits = 0;
  let count = 0;
  let at = 0;
  for (const letter of letters) {
    const value = ALPHABET.indexOf(letter);
    if (value < 0) throw new TypeError(`the data of an ${what} is a string that is no Base64`);
    bits = ((bits << 6) | value) & 0xffffff;
    count += 6;
    if (count >= 8) bytes[at++] = (bits >> (count -= 8)) & 0xff;
  }
  return bytes;
}

/** The Base64 of bytes. */
export function toBase64(bytes) {
  let encoded = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const triple = (bytes[i] << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    encoded += ALPHABET[triple >> 18] + ALPHABET[(triple >> 12) & 63];
    encoded += i + 1 < bytes.length ? ALPHABET[(triple >> 6) & 63] : "=";
    encoded += i + 2 < bytes.length ? ALPHABET[triple & 63] : "=";
  }
  return encoded;
}

/** A content block of MCP's own form, such as `{ type: "text", text: "…" }`, or nothing if it is none. */
function ofMcp(value) {
  const { type, annotations, _meta } = value;
  const meta = annotations || _meta ? { ...(annotations && { annotations }), ...(_meta && { _meta }) } : undefined;
  if (type === "text" && typeof value.text === "string") return text(value.text, meta);
  if (type === "image" && value.data !== undefined && value.mimeType) return image(value.data, value.mimeType, meta);
  if (type === "audio" && value.data !== undefined && value.mimeType) return audio(value.data, value.mimeType, meta);
  if (type === "resource_link" && typeof value.uri === "string") return resourceLink(value, meta);
  if (type === "resource" && typeof value.resource?.uri === "string") {
    const { uri, mimeType, text: words, blob } = value.resource;
    return embedded(uri, words ?? fromBase64("resource", blob), { mimeType, meta });
  }
  return undefined;
}

/** A value as a content block, if it is one or a text. */
export function asContent(value) {
  if (value instanceof Content) return value;
  if (typeof value === "string") return text(value);
  if (value !== null && typeof value === "object" && typeof value.type === "string") return ofMcp(value);
  return undefined;
}

/** A block of the contract. */
export function toBlock({ body, meta }) {
  return { body, extra: meta === undefined ? null : JSON.stringify(meta) };
}

/** A block of the contract in MCP's form, with bytes as they are: what authors read. */
export function fromBlock({ body: { tag, val }, extra }) {
  const more = extra == null ? {} : JSON.parse(extra);
  switch (tag) {
    case "text":
      return { type: "text", text: val, ...more };
    case "image":
    case "audio":
      return { type: tag, data: val.data, mimeType: val.mimeType, ...more };
    case "resource-link":
      return { type: "resource_link", ...withoutNull(val), ...more };
    case "resource":
      return { type: "resource", resource: fromContents(val), ...more };
    default:
      return { ...JSON.parse(val), ...more };
  }
}

/** Contents of the contract in MCP's form, with bytes as they are. */
export function fromContents({ uri, mimeType, body: { tag, val }, extra }) {
  const more = extra == null ? {} : JSON.parse(extra);
  return { uri, ...(mimeType != null && { mimeType }), [tag]: val, ...more };
}

/** An object without the members that are absent. */
export function withoutNull(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined));
}

/** The texts of blocks in MCP's form, joined by line breaks. */
export function plainText(content) {
  return content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
}
