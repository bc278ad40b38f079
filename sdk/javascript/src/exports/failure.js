/** What a handler threw, as an error of the contract. */

import { takeForgotten } from "../awaited.js";
import { TenonError, ToolError, ofHost, toRecord } from "../errors.js";
import { frames } from "../location.js";
import * as log from "../services/log.js";
import { original } from "../sourcemap.js";

/**
 * The error of the contract. Anything that is neither a `TenonError` nor a `ToolError` is a mistake in the plugin: its
 * message has the type and the author's line, and the log has the stack.
 *
 * @param {unknown} given What was thrown.
 * @param {string} what What was called, for the log.
 */
export function toFailure(given, what) {
  const thrown = ofHost(given);
  if (thrown instanceof TenonError) return toRecord(thrown);
  if (thrown instanceof ToolError) return toRecord(new TenonError("failed", thrown.message));
  const { message, stack } = describe(thrown);
  log.error(`${what} failed: ${stack}`);
  // A request that was refused says so as its cause.
  const code = thrown?.cause instanceof TenonError ? thrown.cause.code : "failed";
  return toRecord(new TenonError(code, message));
}

/** Where the definitions stand whose handlers returned what they may not, by the errors that say so. */
const definedAt = new WeakMap();

/**
 * Calls a handler, and makes of what it returned what the contract has. Of a result that is a mistake no line is known,
 * and of a value that was thrown and is no `Error` neither: they are told with the place of the definition.
 *
 * @param {{ location?: string }} entry
 * @param {() => unknown} handler
 * @param {(value: unknown) => unknown} convert
 */
export async function handled({ location }, handler, convert) {
  let value;
  try {
    value = await handler();
  } catch (thrown) {
    if (thrown instanceof Error || ofHost(thrown) !== thrown) throw thrown;
    throw ofDefinition(location, new NotAnError(thrown));
  }
  try {
    return convert(value);
  } catch (thrown) {
    throw ofDefinition(location, thrown);
  }
}

function ofDefinition(location, error) {
  if (location) definedAt.set(error, location);
  return error;
}

/** Something else than an error that was thrown. */
class NotAnError extends Error {
  constructor(thrown) {
    super(notAnError(thrown), { cause: thrown });
  }
}

function notAnError(thrown) {
  const text = typeof thrown === "string" ? thrown : (JSON.stringify(thrown) ?? String(thrown));
  return `${text} was thrown, which is no Error: throw \`new Error(…)\`, whose line is known`;
}

/** How many causes of an error are told. */
const MOST_CAUSES = 5;

/** What was thrown, with the place in the author's files, and the stack. */
export function describe(thrown) {
  if (!(thrown instanceof Error)) {
    const message = notAnError(thrown);
    return { message, stack: message };
  }
  const [defined] = frames(definedAt.has(thrown) ? `at ${definedAt.get(thrown)}` : "").map(place);
  const places = defined ? [defined] : withoutCallers(frames(thrown.stack).map(place));
  const own = places.find(({ isAuthors }) => isAuthors);
  const causes = [];
  for (let cause = thrown.cause; cause instanceof Error && causes.length < MOST_CAUSES; cause = cause.cause) {
    if (!thrown.message.includes(cause.message)) causes.push(`${cause.name}: ${cause.message}`);
  }
  const title = [thrown instanceof NotAnError ? thrown.message : `${thrown.name}: ${thrown.message}`, ...causes].join(", caused by ");
  const at = own ? ` (${own.text})` : "";
  return { message: `${title}${at}`, stack: [title, ...places.map(({ text, name }) => `    at ${name ? `${name} ` : ""}${text}`)].join("\n") };
}

/** The frames without those of this package that call the author's: they tell authors nothing. */
function withoutCallers(places) {
  const innermost = places.findIndex(({ isAuthors }) => isAuthors);
  return innermost < 0 ? places : places.filter(({ isAuthors }, index) => isAuthors || index < innermost);
}

/** Says in the log which promises of the host a call has begun and not awaited. */
export function warnOfForgotten(what) {
  for (const { what: begun, stack } of takeForgotten()) {
    const own = frames(stack).map(place).find(({ isAuthors }) => isAuthors);
    log.warn(`${what} has ended, and nobody awaited \`${begun}\`${own ? ` (${own.text})` : ""}: write \`await\` before it, or what it fails with is lost`);
  }
}

function place({ file, line, column, text }) {
  const [, name = ""] = text.trim().match(/^at (?:async )?([^\s(]+) \(/) ?? [];
  const mapped = original(line, column);
  if (!mapped) {
    const isAuthors = !globalThis.__tenonSourceMap && !/node_modules|sdk\/javascript\/(src|web|testing)\//.test(file);
    return { text: `${shortened(file)}:${line}:${column}`, name, isAuthors };
  }
  const at = mapped.line === undefined ? "" : `:${mapped.line}:${mapped.column}`;
  return { text: `${mapped.file}${at}`, name: known(name), isAuthors: mapped.isAuthors };
}

/** Names of functions that the bundle has shortened say nothing. */
const known = (name) => (name.length > 2 && name !== "<anonymous>" ? name : "");

const shortened = (file) => file.split("/").slice(-2).join("/");
