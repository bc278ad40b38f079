/**
 * Renames imports of a component.
 *
 * componentize-qjs runs the plugin once while it builds, with functions that fail in the place of imports that it does
 * not know, such as `wasi:http`. It knows `wasi:io` and `wasi:clocks`, and takes what they share with `wasi:http` for different types. So
 * while it builds, these have names that it does not know either.
 */

/** The packages that have another name while the component is built. The two names have the same length. */
const WHILE_BUILT = { "host:io/": "wasi:io/", "host:clocks/": "wasi:clocks/" };

/** The section of a component that has its imports. */
const IMPORTS = 10;

/**
 * Gives imports their names back.
 *
 * @param {Uint8Array} component
 * @returns {Uint8Array}
 */
export function rename(component) {
  const renamed = Uint8Array.from(component);
  // The header has 8 bytes.
  for (let at = 8; at < renamed.length; ) {
    const id = renamed[at++];
    const [size, begin] = leb128(renamed, at);
    if (id === IMPORTS) replace(renamed.subarray(begin, begin + size));
    at = begin + size;
  }
  return renamed;
}

function leb128(bytes, from) {
  let [value, shift, at] = [0, 0, from];
  for (;;) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at];
    shift += 7;
  }
}

function replace(section) {
  const view = Buffer.from(section.buffer, section.byteOffset, section.byteLength);
  for (const [built, name] of Object.entries(WHILE_BUILT)) {
    for (let at = view.indexOf(built); at >= 0; at = view.indexOf(built, at)) view.write(name, at);
  }
}
