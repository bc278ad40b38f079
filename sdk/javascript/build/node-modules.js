/** Modules of Node that components do not have, and what to use instead. */

import { builtinModules } from "node:module";

const names = new Set(builtinModules.filter((name) => !name.startsWith("_")));

/** What to do instead of using a module. */
const REMEDIES = {
  assert: "write `if (!condition) throw new Error(…)`",
  buffer: "use `Uint8Array`, `TextEncoder` and `atob`, or install the package `buffer`",
  child_process: "a plugin starts no processes; `tools.call` of \"@tenon/sdk\" calls other plugins' tools",
  crypto: "use `crypto.getRandomValues` and `crypto.randomUUID`, which need no import, and a package such as `@noble/hashes` for hashes",
  events: "use `EventTarget`, which needs no import, or install the package `events`",
  fs: "what the plugin keeps is in `state` of \"@tenon/sdk\"; a file beside it can be imported if it is JSON or text",
  http: "use `fetch`, which needs no import",
  https: "use `fetch`, which needs no import",
  net: "use `fetch`, which needs no import; there are no sockets",
  os: "a plugin does not see the machine; settings are in `config` of \"@tenon/sdk\"",
  path: "work with strings, or install the package `pathe`",
  perf_hooks: "use `performance`, which needs no import",
  process: "settings are in `config` of \"@tenon/sdk\", secrets in `secrets`",
  querystring: "use `URLSearchParams`, which needs no import",
  stream: "use `ReadableStream` and async generators",
  timers: "use `setTimeout`, which needs no import",
  url: "use `URL`, which needs no import",
  util: "use `structuredClone`, `console` and `TextEncoder`, which need no import",
};

/** The module of Node that a specifier names, without `node:`; nothing if it names none. */
export function builtin(specifier) {
  const name = specifier.replace(/^node:/, "");
  return names.has(name) || specifier.startsWith("node:") ? name : undefined;
}

/** What is wrong with importing one. */
export function problem(specifier) {
  const name = builtin(specifier).split("/")[0];
  return {
    message: `\`${specifier}\` does not exist in a component: it is a module of Node`,
    hint: REMEDIES[name] ?? "use what \"@tenon/sdk\" and the web offer, or a package that runs in browsers",
  };
}
