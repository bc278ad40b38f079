/** Where in the author's files something stands. */

/** A frame of a stack: of V8 or of QuickJS. */
const FRAME = /(?:\(|at )((?:file:\/\/)?[^()\s][^()]*?):(\d+)(?::(\d+))?\)?$/;

/**
 * The frames of a stack that have a file, the innermost first.
 *
 * @param {string | undefined} stack
 * @returns {{ file: string, line: number, column: number, text: string }[]}
 */
export function frames(stack) {
  const found = [];
  for (const text of String(stack ?? "").split("\n")) {
    const [, file, line, column] = text.trim().match(FRAME) ?? [];
    if (file === undefined || file.startsWith("node:")) continue;
    found.push({ file: file.replace(/^file:\/\//, ""), line: Number(line), column: Number(column ?? 1), text });
  }
  return found;
}

/** Where a function of this package was called from, as `file:line:column`; nothing where the engine cannot tell. */
export function callerOf(called) {
  const holder = {};
  Error.captureStackTrace?.(holder, called);
  const [frame] = frames(holder.stack);
  return frame && `${frame.file}:${frame.line}:${frame.column}`;
}
