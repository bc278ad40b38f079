/** What is global in a component, and what to use instead of what is not. */

/** What QuickJS has by itself. */
const ENGINE = `AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array Boolean
  DOMException DataView Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function
  Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy
  RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError TypeError
  URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet atob btoa decodeURI decodeURIComponent
  encodeURI encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt queueMicrotask undefined
  unescape`.split(/\s+/);

/** Removes what only Node has, so that a plugin that uses it fails when it is described and not when it runs. */
export function removeOthers(global) {
  const kept = new Set(ENGINE);
  for (const name of Object.getOwnPropertyNames(global)) {
    if (!kept.has(name) && !name.startsWith("__tenon")) delete global[name];
  }
}

const REMEDIES = {
  Bun: "use what \"@tenon/sdk\" and the web offer",
  Buffer: "use `Uint8Array` and `TextEncoder`",
  Deno: "use what \"@tenon/sdk\" and the web offer",
  Intl: "QuickJS has no `Intl`; install a package, or format by hand",
  McpServer: "the host speaks MCP; a plugin defines tools with `tool` of \"@tenon/sdk\"",
  WebAssembly: "a component cannot compile WebAssembly",
  WebSocket: "there are no sockets; `fetch` is there",
  Blob: "use `Uint8Array`",
  File: "use `Uint8Array`",
  FormData: "use `URLSearchParams`, or write the body by hand",
  XMLHttpRequest: "use `fetch`",
  __dirname: "a component has no folder; import JSON and text files instead",
  __filename: "a component has no file",
  alert: "use `user.ask` of \"@tenon/sdk\"",
  axios: "use `fetch`",
  document: "a component has no page",
  global: "write `globalThis`",
  localStorage: "use `state` of \"@tenon/sdk\"",
  process: "settings are in `config` of \"@tenon/sdk\", secrets in `secrets`",
  prompt: "import `prompt` from \"@tenon/sdk\"",
  require: "write `import`",
  setImmediate: "use `queueMicrotask` or `setTimeout`",
  window: "write `globalThis`",
};

/** What the functions of this package are called, which authors forget to import. */
const OWN = ["tool", "hook", "veto", "resource", "evaluation", "finding", "provider", "text", "image", "audio", "embedded", "resourceLink", "toolResult", "ToolError", "TenonError", "config", "inference", "log", "memory", "messaging", "notify", "secrets", "state", "tools", "user"];

/** What to do about a name that is not defined. */
export function remedy(name) {
  if (OWN.includes(name)) return `write \`import { ${name} } from "@tenon/sdk";\``;
  return REMEDIES[name];
}
