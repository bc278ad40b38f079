/** UTF-8, for texts that the host keeps as bytes. */

/** The UTF-8 of a text. A half of a pair becomes U+FFFD. */
export function encode(text) {
  const escaped = encodeURIComponent(text.toWellFormed?.() ?? text);
  const bytes = new Uint8Array(escaped.length);
  let at = 0;
  for (let i = 0; i < escaped.length; i++) {
    if (escaped[i] !== "%") bytes[at++] = escaped.charCodeAt(i);
    else {
      bytes[at++] = parseInt(escaped.slice(i + 1, i + 3), 16);
      i += 2;
    }
  }
  return bytes.slice(0, at);
}

/**
 * The text of UTF-8.
 *
 * @throws {URIError} Where the bytes are no UTF-8.
 */
export function decode(bytes) {
  let escaped = "";
  for (const byte of bytes) escaped += byte < 0x80 && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, "0")}`;
  return decodeURIComponent(escaped);
}
