/** Where the functions of the host come from: the imports of the component, or a test's `Host`. */

import { watched } from "./awaited.js";
import { TenonError, ofHost } from "./errors.js";

/** The line of `plugin.toml` that requests each capability, where a call does not know a better one. */
const LINES = {
  messaging: '["*"]',
  memory: '["search"]',
  user: '["ask"]',
  state: '["project"]',
  providers: '["default"]',
  tools: '["*"]',
  secrets: '["api-key"]',
  network: '["https://api.example.com/*"]',
};

/** Gives the host at hand: its interfaces by their names without a version. */
let current = () => undefined;

/** Sets where the host comes from. */
export function connect(source) {
  current = source;
}

/** The host at hand, if there is one. */
export function host() {
  return current();
}

/**
 * An interface of the host that every plugin has.
 *
 * @param {string} name Such as `tenon:plugin/config`.
 */
export function always(name) {
  const found = current()?.[name];
  if (!found) throw noHost();
  return found;
}

/**
 * An interface that the manifest requests.
 *
 * @param {string} name
 * @param {keyof LINES} capability
 * @param {string[]} [values] What to request, where the call knows.
 */
export function requested(name, capability, values) {
  const at = current();
  if (!at) throw noHost();
  if (at[name]) return at[name];
  const line = `${capability} = ${values ? JSON.stringify(values) : LINES[capability]}`;
  throw new TenonError("denied", `\`${capability}\` is not granted; plugin.toml requests it with \`${line}\` under [capabilities]`);
}

/** Calls a function of the host, whose errors become a `TenonError`. */
export function call(operation) {
  try {
    return operation();
  } catch (thrown) {
    throw ofHost(thrown);
  }
}

/** As `call`, for what the host may answer later; `what` is its name in messages. */
export function callLater(what, operation) {
  return watched(what, answered(operation));
}

async function answered(operation) {
  try {
    return await operation();
  } catch (thrown) {
    throw ofHost(thrown);
  }
}

function noHost() {
  if (globalThis.__tenonDescribed) return new Error("the host is not there while the plugin is built: call this in a handler, and not at the top of the file");
  return new Error("there is no host here: a test calls this within `new Host({ … }).run(() => …)` of \"@tenon/sdk/testing\"");
}
