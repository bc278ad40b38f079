/** `console`, which writes to the host's log. */

import * as log from "../src/services/log.js";
import { format, inspect } from "./inspect.js";

const counts = new Map();
const timers = new Map();
let indent = "";

const at = (level) => (...values) => log[level](indent + format(...values));

export const console = {
  log: at("info"),
  info: at("info"),
  debug: at("debug"),
  warn: at("warn"),
  error: at("error"),
  trace: (...values) => log.trace(`${indent}${format(...values)}\n${new Error().stack ?? ""}`.trimEnd()),
  dir: (value) => log.info(indent + inspect(value)),
  table: (value) => log.info(indent + inspect(value)),
  assert(condition, ...values) {
    if (!condition) log.error(`${indent}assertion failed${values.length > 0 ? `: ${format(...values)}` : ""}`);
  },
  count(label = "default") {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    log.info(`${indent}${label}: ${counts.get(label)}`);
  },
  countReset: (label = "default") => void counts.delete(label),
  time: (label = "default") => void timers.set(label, Date.now()),
  timeLog(label = "default", ...values) {
    if (timers.has(label)) log.info(`${indent}${label}: ${Date.now() - timers.get(label)} ms ${format(...values)}`.trimEnd());
  },
  timeEnd(label = "default") {
    this.timeLog(label);
    timers.delete(label);
  },
  group(...values) {
    if (values.length > 0) log.info(indent + format(...values));
    indent += "  ";
  },
  groupCollapsed(...values) {
    this.group(...values);
  },
  groupEnd() {
    indent = indent.slice(2);
  },
};
