/** `fetch`, over `wasi:http`. */

import { watched } from "../src/awaited.js";
import { Body } from "./body.js";
import { parse, resolve } from "./http-url.js";
import { send } from "./http.js";
import { Request, Response } from "./request.js";

const MOST_REDIRECTS = 20;
const REDIRECTS = [301, 302, 303, 307, 308];

/**
 * Requests a URL. The host checks each request against `network` of the manifest, redirects as well.
 *
 * @throws {TypeError} Where there is no answer, as in browsers: `cause` has the reason.
 */
export function fetch(input, init) {
  // The engine does not know who waits for an answer, so the place of the call is kept for errors.
  const { stack } = new Error();
  const answer = requested(input, init).catch((thrown) => {
    if (thrown instanceof Error) thrown.stack = `${thrown.stack ?? ""}\n${stack}`;
    throw thrown;
  });
  return watched("fetch", answer);
}

async function requested(input, init) {
  let request = new Request(input, init);
  const { signal, redirect } = request;
  signal?.throwIfAborted();
  for (let redirected = 0; ; redirected++) {
    const answer = await aborting(signal, send(request, signal));
    const location = REDIRECTS.includes(answer.status) ? answer.headers.get("location") : null;
    if (location === null || redirect === "manual") {
      return new Response(answer.body, { status: answer.status, headers: answer.headers, url: request.url, redirected: redirected > 0 });
    }
    if (redirect === "error") throw failed(request, `it redirects to ${location}`);
    if (redirected >= MOST_REDIRECTS) throw failed(request, `it redirects more than ${MOST_REDIRECTS} times`);
    await answer.body?.cancel();
    request = follow(request, answer.status, location);
  }
}

/** The request that a redirect asks for. */
function follow(request, status, location) {
  const from = parse(request.url);
  const url = resolve(location, from);
  const becomesGet = (status === 303 && request.method !== "HEAD") || ((status === 301 || status === 302) && request.method === "POST");
  const headers = [...request.headers].filter(([name]) => {
    if (becomesGet && name.startsWith("content-")) return false;
    // Who is asked now may be somebody else.
    return from.origin === url.origin || !["authorization", "cookie", "proxy-authorization"].includes(name);
  });
  const body = becomesGet ? undefined : Body.wholeOf(request);
  if (!becomesGet && !body && request.bodyUsed) throw failed(request, "it redirects, and a body that is a stream cannot be sent twice");
  return new Request(url.href, { method: becomesGet ? "GET" : request.method, headers, body, signal: request.signal, redirect: request.redirect });
}

function failed(request, reason) {
  return new TypeError(`${request.method} ${request.url} failed: ${reason}`, { cause: new Error(reason) });
}

/** What an operation gives, or the reason of a signal if that comes first. */
function aborting(signal, operation) {
  if (!signal) return operation;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason ?? new DOMException("the operation was aborted", "AbortError"));
    signal.addEventListener("abort", abort, { once: true });
    operation.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
