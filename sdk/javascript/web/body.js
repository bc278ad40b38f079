/** The bodies of requests and responses. */

import { asBytes } from "../src/content.js";
import { ReadableStream } from "./streams.js";
import { TextDecoder, TextEncoder } from "./text.js";

/** What `body` of a request or response may be, as a stream or bytes, with the media type that it implies. */
function parse(init) {
  if (init === undefined || init === null) return {};
  if (init instanceof ReadableStream) return { stream: init };
  const bytes = asBytes(init);
  if (bytes) return { bytes: bytes.slice() };
  if (typeof init[Symbol.asyncIterator] === "function") return { stream: ReadableStream.from(init) };
  const isForm = Object.prototype.toString.call(init) === "[object URLSearchParams]";
  const type = isForm ? "application/x-www-form-urlencoded;charset=UTF-8" : "text/plain;charset=UTF-8";
  return { bytes: new TextEncoder().encode(String(init)), type };
}

/** A body that can be read once. */
export class Body {
  #stream;
  #bytes;
  #used = false;

  constructor(init, headers) {
    const { stream, bytes, type } = parse(init);
    this.#stream = stream;
    this.#bytes = bytes;
    if (type && !headers.has("content-type")) headers.set("content-type", type);
  }

  get body() {
    if (this.#stream === undefined && this.#bytes !== undefined) {
      const bytes = this.#bytes;
      this.#stream = new ReadableStream({
        pull(controller) {
          if (bytes.length > 0) controller.enqueue(bytes);
          controller.close();
        },
      });
    }
    return this.#stream ?? null;
  }

  get bodyUsed() {
    return this.#used || Boolean(this.#stream?.locked);
  }

  /** The bytes of a body that is none yet read, without a stream. */
  static wholeOf(body) {
    return body.#stream ? undefined : body.#bytes;
  }

  /** A body of the same bytes, for `clone`. */
  static copyOf(body) {
    if (body.bodyUsed) throw new TypeError("the body was read already");
    if (body.#stream) throw new TypeError("a body that is a stream cannot be cloned: read it and keep what was read");
    return body.#bytes;
  }

  async bytes() {
    if (this.bodyUsed) throw new TypeError("the body was read already");
    this.#used = true;
    if (this.#stream === undefined) return this.#bytes ?? new Uint8Array(0);
    const chunks = [];
    let length = 0;
    for await (const chunk of this.#stream) {
      const bytes = typeof chunk === "string" ? new TextEncoder().encode(chunk) : asBytes(chunk);
      if (!bytes) throw new TypeError("a body is a stream of bytes");
      chunks.push(bytes);
      length += bytes.length;
    }
    const all = new Uint8Array(length);
    let at = 0;
    for (const chunk of chunks) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }

  async arrayBuffer() {
    const bytes = await this.bytes();
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }

  async text() {
    return new TextDecoder().decode(await this.bytes());
  }

  async json() {
    const text = await this.text();
    try {
      return JSON.parse(text);
    } catch (thrown) {
      const shown = text.length > 60 ? `${text.slice(0, 57)}…` : text;
      throw new SyntaxError(`the body is no JSON: ${JSON.stringify(shown)}`, { cause: thrown });
    }
  }

  async formData() {
    throw new TypeError("there is no `FormData` in a component: `new URLSearchParams(await response.text())` reads a form");
  }

  async blob() {
    throw new TypeError("there is no `Blob` in a component: use `bytes()` or `arrayBuffer()`");
  }
}
