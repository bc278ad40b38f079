/** What is wrong with a plugin, as its author reads it. */

import { readFileSync } from "node:fs";
import path from "node:path";

/** How JSON is written, for whoever has written it otherwise. */
export const JSON_SYNTAX = "names and texts are in double quotes, with commas between them and none after the last";

/** A plugin that cannot be built: its problems. */
export class BuildError extends Error {
  /** @param {Problem[]} problems */
  constructor(problems) {
    super(problems.map(toText).join("\n"));
    this.name = "BuildError";
    this.problems = problems;
  }
}

/**
 * @typedef {{ message: string, hint?: string, file?: string, line?: number, column?: number, source?: string }} Problem
 *   `source` is the line of the file. Lines and columns count from 1.
 */

/** A problem as text: where, what, the line, and what to do. */
export function toText({ message, hint, file, line, column, source }) {
  const at = file ? `${file}${line ? `:${line}${column ? `:${column}` : ""}` : ""}: ` : "";
  const shown = source?.trim() ? [`  ${String(line).padStart(4)} | ${source.trimEnd()}`] : [];
  return [`error: ${at}${message}`, ...shown, ...(hint ? [`  hint: ${hint}`] : [])].join("\n");
}

/** The lines of a file of the author's, for problems. */
export class Sources {
  #files = new Map();

  constructor(folder) {
    this.folder = folder;
  }

  lines(file) {
    const at = path.resolve(this.folder, file);
    if (!this.#files.has(at)) {
      let lines = [];
      try {
        lines = readFileSync(at, "utf8").split("\n");
      } catch {
        // A file that is not there has no lines to show.
      }
      this.#files.set(at, lines);
    }
    return this.#files.get(at);
  }

  /** A file's path as authors know it. */
  relative(file) {
    return path.relative(this.folder, path.resolve(this.folder, file)).split(path.sep).join("/");
  }

  /** A problem at a place, with its line. */
  at({ file, line, column }, rest) {
    return { file: this.relative(file), line, column, source: this.lines(file)[line - 1], ...rest };
  }

  /**
   * Where a field of a definition stands, which begins at this place; the beginning if it is not found. Names within the
   * field lead further, as far as they are found.
   */
  field(place, field, within = []) {
    return within.reduce((at, name) => this.#name(at, name), this.#name(place, field.split(".").at(-1)));
  }

  #name(place, name) {
    const pattern = new RegExp(`(^|[\\s{,(])(["']?)${name.replace(/[^\w$]/g, "\\$&")}\\2\\s*[:(,}]`);
    const lines = this.lines(place.file);
    for (let line = place.line; line <= Math.min(lines.length, place.line + 80); line++) {
      const text = line === place.line ? " ".repeat(place.column - 1) + lines[line - 1].slice(place.column - 1) : lines[line - 1];
      const found = text.match(pattern);
      if (found) return { file: place.file, line, column: found.index + found[1].length + 1 };
      // The next definition begins.
      if (line > place.line && /^(export\s|const\s|let\s|[a-z]+\()/.test(text)) break;
    }
    return place;
  }
}
