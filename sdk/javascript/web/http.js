/** Requests over `wasi:http` 0.2. */

import { host } from "../src/connection.js";
import { TenonError } from "../src/errors.js";
import { Body } from "./body.js";
import { Headers } from "./headers.js";
import { parse } from "./http-url.js";
import { drop, ready } from "./poll.js";
import { ReadableStream } from "./streams.js";
import { TextDecoder, TextEncoder } from "./text.js";

/** How much is read at once, in bytes. */
const CHUNK = 64 * 1024;

/** Headers that the host makes itself. */
const OF_HOST = ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "http2-settings"];

/**
 * Sends a request.
 *
 * @param {Request} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ status: number, headers: Headers, body: ReadableStream | null }>}
 * @throws {TypeError} Where there is no answer.
 */
export async function send(request, signal) {
  const http = host()?.["wasi:http/types"];
  if (!http) throw failure(request, host() ? notGranted(request) : "there is no network while the plugin is built: call `fetch` in a handler, and not where the file is loaded");
  try {
    const outgoing = toOutgoing(http, request);
    const body = request.method === "GET" || request.method === "HEAD" ? undefined : outgoing.body();
    const future = host()["wasi:http/outgoing-handler"].handle(outgoing, null);
    if (body) await write(http, body, request);
    return await answered(future, request, http, signal);
  } catch (thrown) {
    throw thrown?.payload === undefined ? thrown : failure(request, reasonOf(thrown.payload));
  }
}

function toOutgoing(http, request) {
  const { method, url, headers } = request;
  const { protocol, host: authority, pathname, search } = parse(url);
  const encoder = new TextEncoder();
  const pairs = [...headers].filter(([name]) => !OF_HOST.includes(name));
  const whole = Body.wholeOf(request);
  if (whole && !headers.has("content-length")) pairs.push(["content-length", String(whole.length)]);
  const fields = http.Fields.fromList(pairs.map(([name, value]) => [name, encoder.encode(value)]));
  const outgoing = new http.OutgoingRequest(fields);
  outgoing.setMethod(toMethod(method));
  outgoing.setScheme({ tag: protocol === "http:" ? "HTTP" : "HTTPS" });
  outgoing.setAuthority(authority);
  outgoing.setPathWithQuery(pathname + search);
  return outgoing;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

const toMethod = (method) => (METHODS.includes(method) ? { tag: method.toLowerCase() } : { tag: "other", val: method });

async function write(http, body, request) {
  const stream = body.write();
  const whole = Body.wholeOf(request);
  if (whole) await writeAll(stream, whole);
  else if (request.body) for await (const chunk of request.body) await writeAll(stream, typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk);
  drop(stream);
  http.OutgoingBody.finish(body, null);
}

async function writeAll(stream, bytes) {
  let at = 0;
  while (at < bytes.length) {
    const allowed = Number(stream.checkWrite());
    if (allowed === 0) await ready(stream.subscribe());
    const part = bytes.subarray(at, at + Math.min(allowed, CHUNK));
    if (part.length > 0) stream.write(part);
    at += part.length;
  }
  stream.flush();
}

async function answered(future, request, http, signal) {
  const outcome = await awaited(future, signal);
  const response = opened(opened(outcome, request), request);
  const status = response.status();
  const headers = new Headers();
  const decoder = new TextDecoder();
  const fields = response.headers();
  for (const [name, value] of fields.entries()) headers.append(name, decoder.decode(value));
  drop(fields);
  const isEmpty = request.method === "HEAD" || status === 204 || status === 205 || status === 304;
  if (!isEmpty) return { status, headers, body: toStream(response.consume(), request, signal, response) };
  drop(response);
  return { status, headers, body: null };
}

async function awaited(future, signal) {
  try {
    await ready(future.subscribe(), signal);
    return future.get();
  } finally {
    drop(future);
  }
}

/** What is in a nested `result`. */
function opened(result, request) {
  if (result?.tag === "ok") return result.val;
  throw failure(request, reasonOf(result?.val));
}

function toStream(body, request, signal, response) {
  const stream = body.stream();
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    drop(stream);
    drop(body);
    drop(response);
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        signal?.throwIfAborted();
        for (;;) {
          const chunk = stream.read(CHUNK);
          if (chunk.length > 0) return controller.enqueue(chunk instanceof Uint8Array ? chunk : Uint8Array.from(chunk));
          await ready(stream.subscribe(), signal);
        }
      } catch (thrown) {
        end();
        if (thrown?.payload?.tag === "closed") return controller.close();
        throw thrown?.payload === undefined ? thrown : failure(request, `the answer broke off: ${reasonOf(thrown.payload)}`);
      }
    },
    cancel: end,
  });
}

/** The host says in the log what exactly is not granted. */
const DENIED = "it is not granted; plugin.toml requests what may be reached with `network` under [capabilities]";

/** Why a request failed: an `error-code` of `wasi:http` in words. */
function reasonOf(code) {
  const { tag = code, val } = code ?? {};
  const detail = typeof val === "string" ? val : val && typeof val === "object" ? Object.values(val).filter((each) => typeof each === "string").join(" ") : "";
  if (tag === "HTTP-request-denied") return DENIED;
  if (tag === "last-operation-failed") return val?.toDebugString?.() ?? "the connection failed";
  return [String(tag ?? "it failed").replace(/-/g, " "), detail].filter(Boolean).join(": ");
}

function notGranted(request) {
  const { origin } = parse(request.url);
  return `\`network\` is not granted; plugin.toml requests it with \`network = [${JSON.stringify(`${origin}/*`)}]\` under [capabilities]`;
}

function failure({ method, url }, reason) {
  const isDenied = reason.includes("not granted");
  return new TypeError(`${method} ${url} failed: ${reason}`, { cause: isDenied ? new TenonError("denied", reason) : new Error(reason) });
}
