/** The source map as a component carries it: for the lines of errors, and no more. */

import path from "node:path";

import { ALPHABET, decode } from "../src/sourcemap.js";

/**
 * Makes a map small: of the author's files it keeps where lines begin, of others only which file it is.
 *
 * @param {{ sources: string[], mappings: string }} map Version 3, with paths from the plugin's folder.
 * @returns {{ sources: string[], authors: number, mappings: string }} The first `authors` sources are the author's.
 */
export function compact(map, folder) {
  const isOthers = (source) => source.includes("node_modules/") || source.startsWith("../") || source.startsWith("tenon");
  const own = map.sources.filter((source) => !isOthers(source));
  const others = map.sources.filter(isOthers);
  const order = new Map([...own, ...others].map((source, index) => [source, index]));
  const lines = decode(map.mappings).map((segments) => {
    const kept = [];
    let last;
    for (const { column, source, line, sourceColumn } of segments) {
      const index = source < 0 ? -1 : order.get(map.sources[source]);
      const isOwn = index >= 0 && index < own.length;
      const next = { column, source: index, line: isOwn ? line : 0, sourceColumn: isOwn ? sourceColumn : 0 };
      if (last && last.source === next.source && last.line === next.line) continue;
      kept.push(next);
      last = next;
    }
    return kept;
  });
  return { sources: [...own, ...others].map((source) => shortened(source, folder)), authors: own.length, mappings: encode(lines) };
}

/** A path as it is shown: within a package of npm from the package's name on. */
function shortened(source, folder) {
  const at = source.lastIndexOf("node_modules/");
  if (at >= 0) return source.slice(at + "node_modules/".length);
  return source.startsWith("../") ? path.basename(path.resolve(folder, source)) : source;
}

function encode(lines) {
  let [source, line, sourceColumn] = [0, 0, 0];
  return lines
    .map((segments) => {
      let column = 0;
      return segments
        .map((segment) => {
          const numbers = [segment.column - column];
          column = segment.column;
          if (segment.source >= 0) {
            numbers.push(segment.source - source, segment.line - line, segment.sourceColumn - sourceColumn);
            ({ source, line, sourceColumn } = segment);
          }
          return numbers.map(toVlq).join("");
        })
        .join(",");
    })
    .join(";");
}

function toVlq(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = "";
  do {
    const digit = rest & 31;
    rest >>>= 5;
    text += ALPHABET[rest > 0 ? digit | 32 : digit];
  } while (rest > 0);
  return text;
}
