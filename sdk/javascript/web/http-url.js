/**
 * URLs of requests. `URL` is larger than everything else that `fetch` needs together, so it is in a plugin only if that
 * uses it itself.
 */

const WHOLE = /^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#[^]*)?$/i;
const AUTHORITY = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::(\d*))?$/i;
const DEFAULT_PORTS = { "http:": "80", "https:": "443" };

/** @typedef {{ protocol: string, host: string, pathname: string, search: string, origin: string, href: string }} HttpUrl */

/**
 * Reads a whole URL, and writes it as the standard does.
 *
 * @param {string} text
 * @returns {HttpUrl}
 * @throws {TypeError} Where it is no URL of http or https, has a password, or a host with letters beyond ASCII, which
 *   `new URL(…)` encodes.
 */
export function parse(text) {
  const [, scheme, authority, path, query = ""] = normal(text).match(WHOLE) ?? [];
  if (scheme === undefined) throw new TypeError(`${JSON.stringify(text)} is no URL: a request needs a whole one of http or https, such as https://api.example.com/x`);
  if (authority.includes("@")) throw new TypeError("the URL of a request has no password: send it in a header");
  const [, name, port = ""] = authority.match(AUTHORITY) ?? [];
  if (name === undefined) throw new TypeError(`${JSON.stringify(authority)} is no host: \`new URL(…)\` encodes those with other letters`);
  const protocol = `${scheme.toLowerCase()}:`;
  const number = port === "" ? "" : String(Number(port));
  if (Number(number) > 65535) throw new TypeError(`${number} is no port`);
  const host = name.toLowerCase() + (number === "" || number === DEFAULT_PORTS[protocol] ? "" : `:${number}`);
  const pathname = withoutDots(encode(path, /["<>`{}^]|[^\x21-\x7e]/gu));
  const search = query === "?" ? "" : encode(query, /["<>']|[^\x21-\x7e]/gu);
  const origin = `${protocol}//${host}`;
  return { protocol, host, pathname, search, origin, href: origin + pathname + search };
}

/** The URL that a reference means in an answer from this one. */
export function resolve(reference, { protocol, origin, pathname, search }) {
  if (/^[a-z][a-z0-9+.-]*:/i.test(reference)) return parse(reference);
  if (reference.startsWith("//")) return parse(protocol + reference);
  if (reference.startsWith("/")) return parse(origin + reference);
  if (reference.startsWith("?")) return parse(origin + pathname + reference);
  if (reference === "" || reference.startsWith("#")) return parse(origin + pathname + search);
  return parse(origin + pathname.slice(0, pathname.lastIndexOf("/") + 1) + reference);
}

/** The text without what the standard passes over, and with `/` for each `\` before the query. */
function normal(text) {
  const [path, ...rest] = text.trim().replace(/[\t\n\r]/g, "").split(/(?=[?#])/);
  return path.replace(/\\/g, "/") + rest.join("");
}

const encode = (text, characters) => text.toWellFormed().replace(characters, (character) => (character === "'" ? "%27" : encodeURIComponent(character)));

/** A path without `.` and `..`. */
function withoutDots(path) {
  const kept = [];
  const segments = path.split("/").slice(1);
  segments.forEach((segment, index) => {
    const plain = segment.replace(/%2e/gi, ".");
    const isLast = index === segments.length - 1;
    if (plain === "..") kept.pop();
    else if (plain !== ".") kept.push(segment);
    if (isLast && (plain === "." || plain === "..")) kept.push("");
  });
  return `/${kept.join("/")}`;
}
