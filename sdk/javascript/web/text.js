/** `TextEncoder` and `TextDecoder`: UTF-8, UTF-16 and Latin-1. */

/** Encodes texts as UTF-8. */
export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    const source = String(text);
    const bytes = new Uint8Array(source.length * 3);
    return bytes.slice(0, this.encodeInto(source, bytes).written);
  }

  encodeInto(text, bytes) {
    const source = String(text);
    let [read, written] = [0, 0];
    for (const letter of source) {
      let code = letter.codePointAt(0);
      if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
      const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      if (written + size > bytes.length) break;
      if (size === 1) bytes[written++] = code;
      else {
        bytes[written++] = [0, 0, 0xc0, 0xe0, 0xf0][size] | (code >> (6 * (size - 1)));
        for (let shift = 6 * (size - 2); shift >= 0; shift -= 6) bytes[written++] = 0x80 | ((code >> shift) & 0x3f);
      }
      read += letter.length;
    }
    return { read, written };
  }
}

const LABELS = {
  "utf-8": "utf-8", utf8: "utf-8", "unicode-1-1-utf-8": "utf-8",
  "utf-16le": "utf-16le", "utf-16": "utf-16le", "utf-16be": "utf-16be",
  latin1: "windows-1252", "iso-8859-1": "windows-1252", ascii: "windows-1252", "us-ascii": "windows-1252", "windows-1252": "windows-1252",
};

/** What the bytes 0x80 to 0x9f are in windows-1252. */
const WINDOWS = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ";

/** Decodes bytes. */
export class TextDecoder {
  #kept = new Uint8Array(0);
  #begun = false;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    this.encoding = LABELS[String(label).trim().toLowerCase()];
    if (!this.encoding) throw new RangeError(`the encoding ${JSON.stringify(label)} is not known: there are utf-8, utf-16le, utf-16be and windows-1252`);
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }

  decode(input, { stream = false } = {}) {
    const given = toBytes(input);
    const bytes = this.#kept.length === 0 ? given : joined(this.#kept, given);
    this.#kept = new Uint8Array(0);
    const { text, rest } = this.encoding === "utf-8" ? this.#utf8(bytes, stream) : this.encoding === "windows-1252" ? latin1(bytes) : this.#utf16(bytes, stream);
    if (rest) this.#kept = rest;
    const isFirst = !this.#begun;
    this.#begun = stream && (this.#begun || text !== "");
    return isFirst && !this.ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  #bad() {
    if (this.fatal) throw new TypeError(`the bytes are no ${this.encoding}`);
    return 0xfffd;
  }

  #utf8(bytes, stream) {
    const pieces = [];
    let codes = [];
    let i = 0;
    while (i < bytes.length) {
      const first = bytes[i];
      const size = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
      if (size === 1) codes.push(first);
      let taken = 1;
      if (size > 1) {
        let code = first & (0xff >> (size + 1));
        while (taken < size && i + taken < bytes.length && continues(bytes[i + taken], first, taken)) code = (code << 6) | (bytes[i + taken++] & 0x3f);
        if (taken === size) codes.push(code);
        else if (stream && i + taken === bytes.length) return { text: pieces.join("") + String.fromCodePoint(...codes), rest: bytes.slice(i) };
        else codes.push(this.#bad());
      } else if (size === 0) codes.push(this.#bad());
      i += taken;
      if (codes.length >= 4096) {
        pieces.push(String.fromCodePoint(...codes));
        codes = [];
      }
    }
    return { text: pieces.join("") + String.fromCodePoint(...codes) };
  }

  #utf16(bytes, stream) {
    const [low, high] = this.encoding === "utf-16le" ? [0, 1] : [1, 0];
    const even = bytes.length - (bytes.length % 2);
    let text = "";
    for (let i = 0; i < even; i += 2) text += String.fromCharCode(bytes[i + low] | (bytes[i + high] << 8));
    if (even === bytes.length) return { text };
    return stream ? { text, rest: bytes.slice(even) } : { text: text + String.fromCharCode(this.#bad()) };
  }
}

/** Whether a byte may stand at this place of a sequence; the second of some is bounded further. */
function continues(byte, first, index) {
  const least = index === 1 ? ({ 0xe0: 0xa0, 0xf0: 0x90 }[first] ?? 0x80) : 0x80;
  const most = index === 1 ? ({ 0xed: 0x9f, 0xf4: 0x8f }[first] ?? 0xbf) : 0xbf;
  return byte >= least && byte <= most;
}

function latin1(bytes) {
  let text = "";
  for (const byte of bytes) text += byte >= 0x80 && byte < 0xa0 ? WINDOWS[byte - 0x80] : String.fromCharCode(byte);
  return { text };
}

function toBytes(input) {
  if (input === undefined) return new Uint8Array(0);
  if (input instanceof Uint8Array) return input;
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  throw new TypeError("`decode` takes an ArrayBuffer or a view of one");
}

function joined(one, other) {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}
