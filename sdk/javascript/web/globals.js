/**
 * The web APIs that are global in a component. The build puts an import of each that a plugin uses in the place of the
 * global name, so that those which it does not use cost nothing.
 */

export { AbortController, AbortSignal } from "./abort.js";
export { structuredClone } from "./clone.js";
export { console } from "./console.js";
export { CustomEvent, Event, EventTarget } from "./events.js";
export { fetch } from "./fetch.js";
export { Headers } from "./headers.js";
export { performance } from "./performance.js";
export { crypto, random as "Math.random" } from "./random.js";
export { Request, Response } from "./request.js";
export { ReadableStream } from "./streams.js";
export { TextDecoder, TextEncoder } from "./text.js";
export { clearInterval, clearTimeout, setInterval, setTimeout } from "./timers.js";
export { timeoutSignal as "AbortSignal.timeout" } from "./timeout-signal.js";
export { URL, URLSearchParams } from "whatwg-url-minimum";

// The same where a plugin writes them as members.
export { AbortController as "globalThis.AbortController", AbortSignal as "globalThis.AbortSignal" } from "./abort.js";
export { structuredClone as "globalThis.structuredClone" } from "./clone.js";
export { console as "globalThis.console" } from "./console.js";
export { CustomEvent as "globalThis.CustomEvent", Event as "globalThis.Event", EventTarget as "globalThis.EventTarget" } from "./events.js";
export { fetch as "globalThis.fetch" } from "./fetch.js";
export { Headers as "globalThis.Headers" } from "./headers.js";
export { performance as "globalThis.performance" } from "./performance.js";
export { crypto as "globalThis.crypto" } from "./random.js";
export { Request as "globalThis.Request", Response as "globalThis.Response" } from "./request.js";
export { ReadableStream as "globalThis.ReadableStream" } from "./streams.js";
export { TextDecoder as "globalThis.TextDecoder", TextEncoder as "globalThis.TextEncoder" } from "./text.js";
export { clearInterval as "globalThis.clearInterval", clearTimeout as "globalThis.clearTimeout", setInterval as "globalThis.setInterval", setTimeout as "globalThis.setTimeout" } from "./timers.js";
export { URL as "globalThis.URL", URLSearchParams as "globalThis.URLSearchParams" } from "whatwg-url-minimum";
