/** Where the lines of the bundle come from: the author's files. */

/** The digits of numbers in source maps: Base64. */
export const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

let decoded;

/**
 * The place in the author's files of a place in the bundle. `tenon build` puts the map into the bundle; without one,
 * places are what they are.
 *
 * @returns {{ file: string, line?: number, column?: number, isAuthors: boolean } | undefined}
 */
export function original(line, column) {
  const map = globalThis.__tenonSourceMap;
  if (!map) return undefined;
  decoded ??= decode(map.mappings);
  const segments = decoded[line - 1] ?? [];
  let found;
  for (const segment of segments) {
    if (segment.column > column - 1) break;
    found = segment;
  }
  if (!found || found.source < 0) return undefined;
  const file = map.sources[found.source];
  const isAuthors = found.source < map.authors;
  return isAuthors ? { file, line: found.line + 1, column: found.sourceColumn + 1, isAuthors } : { file, isAuthors };
}

/**
 * The mappings of a source map (version 3), by lines of what was generated. A segment that comes from no source has the
 * source -1, and no line of it.
 */
export function decode(mappings) {
  let [source, line, sourceColumn] = [0, 0, 0];
  return mappings.split(";").map((text) => {
    let column = 0;
    return text.split(",").filter(Boolean).map((segment) => {
      const numbers = vlq(segment);
      column += numbers[0];
      if (numbers.length < 4) return { column, source: -1 };
      source += numbers[1];
      line += numbers[2];
      sourceColumn += numbers[3];
      return { column, source, line, sourceColumn };
    });
  });
}

function vlq(text) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}
