/** Where the lines of the bundle come from: the author's files. */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
  decoded ??= decode(map);
  const segments = decoded[line - 1] ?? [];
  let found;
  for (const segment of segments) {
    if (segment.column > column - 1) break;
    found = segment;
  }
  if (!found || found.source < 0) return undefined;
  const file = map.sources[found.source];
  const isAuthors = found.source < map.authors;
  return isAuthors ? { file, line: found.sourceLine + 1, column: found.sourceColumn + 1, isAuthors } : { file, isAuthors };
}

/** The mappings of a source map (version 3), by lines. */
function decode({ mappings }) {
  let [source, sourceLine, sourceColumn] = [0, 0, 0];
  return mappings.split(";").map((line) => {
    let column = 0;
    return line.split(",").filter(Boolean).map((text) => {
      const numbers = vlq(text);
      column += numbers[0];
      if (numbers.length < 4) return { column, source: -1 };
      source += numbers[1];
      sourceLine += numbers[2];
      sourceColumn += numbers[3];
      return { column, source, sourceLine, sourceColumn };
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
