/** The host's log, under the plugin's name. The host bounds how much a plugin writes, and drops the rest. */

import { host } from "../connection.js";

/** A test without a host sees what the plugin logs where tests print. In a component, this console does not exist. */
function print(level, message, fields) {
  const { console: own } = globalThis;
  own?.[level === "trace" ? "debug" : level](message, ...fields);
}

function write(level, message, fields = {}) {
  const log = host()?.["tenon:plugin/log"];
  const pairs = Object.entries(fields).map(([name, value]) => [name, typeof value === "string" ? value : (JSON.stringify(value) ?? String(value))]);
  if (log) log.write(level, String(message), pairs);
  else print(level, String(message), pairs.length > 0 ? [fields] : []);
}

/** Writes a message of the least importance, with fields for machines. */
export const trace = (message, fields) => write("trace", message, fields);
/** Writes what helps to find errors. */
export const debug = (message, fields) => write("debug", message, fields);
/** Writes what an operator may want to know. */
export const info = (message, fields) => write("info", message, fields);
/** Writes what an operator should look at. */
export const warn = (message, fields) => write("warn", message, fields);
/** Writes that something failed. */
export const error = (message, fields) => write("error", message, fields);
