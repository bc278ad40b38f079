/** The web APIs of components, beside those of Node, which are the standard's. */

import assert from "node:assert/strict";
import test from "node:test";

import { connect } from "../src/connection.js";
import * as abort from "../web/abort.js";
import { structuredClone as clone } from "../web/clone.js";
import { console as logging } from "../web/console.js";
import { Headers as OwnHeaders } from "../web/headers.js";
import { parse, resolve } from "../web/http-url.js";
import { format } from "../web/inspect.js";
import { Request as OwnRequest, Response as OwnResponse } from "../web/request.js";
import { ReadableStream as OwnStream } from "../web/streams.js";
import { TextDecoder as OwnDecoder, TextEncoder as OwnEncoder } from "../web/text.js";
import { crypto as ownCrypto, random } from "../web/random.js";
import { clearTimeout as clear, setInterval as every, setTimeout as later } from "../web/timers.js";

const texts = ["", "abc", "ü€😀", "\ud800x", "\ufeffbom"];

for (const text of texts) {
  test(`UTF-8 of ${JSON.stringify(text)}`, () => {
    const bytes = new TextEncoder().encode(text);
    assert.deepEqual([...new OwnEncoder().encode(text)], [...bytes]);
    assert.equal(new OwnDecoder().decode(bytes), new TextDecoder().decode(bytes));
  });
}

const bad = [[0xff], [0xc3], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf0, 0x80, 0x80, 0x80], [0xc0, 0x80], [0x61, 0xe2, 0x28, 0xa1]];

for (const bytes of bad) {
  test(`bytes that are no UTF-8: ${bytes}`, () => {
    const given = Uint8Array.from(bytes);
    assert.equal(new OwnDecoder().decode(given), new TextDecoder().decode(given));
    assert.throws(() => new OwnDecoder("utf-8", { fatal: true }).decode(given), TypeError);
  });
}

test("UTF-8 in pieces, and other encodings", () => {
  const decoder = new OwnDecoder();
  const bytes = new TextEncoder().encode("a😀b");
  const pieces = [...bytes].map((byte) => decoder.decode(Uint8Array.of(byte), { stream: true }));
  assert.equal(pieces.join("") + decoder.decode(), "a😀b");
  for (const [label, given, expected] of [["utf-16le", [0x41, 0, 0x3d, 0xd8, 0, 0xde], "A😀"], ["latin1", [0x41, 0x80, 0xe9], "A€é"]]) {
    assert.equal(new OwnDecoder(label).decode(Uint8Array.from(given)), expected);
  }
  assert.throws(() => new OwnDecoder("koi8-r"), RangeError);
});

test("headers", () => {
  const init = [["B", " 2 "], ["a", "1"], ["A", "3"], ["Set-Cookie", "x"], ["set-cookie", "y"]];
  assert.deepEqual([...new OwnHeaders(init)], [...new Headers(init)]);
  assert.equal(new OwnHeaders({ A: 1 }).get("a"), "1");
  assert.throws(() => new OwnHeaders({ "a b": "1" }), TypeError);
  assert.throws(() => new OwnHeaders({ a: "1\n2" }), TypeError);
});

const urls = ["https://a.b", "HTTP://A.b:80/x", "https://a.b:8443/c d/ü?q=ü'\"#f", "https://a.b/x/../y/./z/..", "https://a.b/%2e%2e/x?", "http://[::1]:3000/a{b}|c", "https://a.b\\c", "https://a_b.c/?x=%zz&y=a b"];

for (const url of urls) {
  test(`the URL ${url}`, () => {
    const { protocol, host, pathname, search, origin, href } = parse(url);
    const standard = new URL(url);
    standard.hash = "";
    assert.deepEqual([protocol, host, pathname, origin], [standard.protocol, standard.host, standard.pathname, standard.origin]);
    assert.equal(href, standard.href.replace(/\?$/, ""));
    assert.equal(search, standard.search);
  });
}

for (const reference of ["https://c.d/x", "//c.d/x", "/x", "x", "../x", "?q", "#f", "", "./x?y"]) {
  test(`the reference ${reference}`, () => {
    const base = "https://a.b/c/d?e";
    const standard = new URL(reference, base);
    standard.hash = "";
    assert.equal(resolve(reference, parse(base)).href, standard.href);
  });
}

for (const url of ["/x", "ftp://a.b", "https://u:p@a.b", "https://bücher.de", "https://a b/", "https://a.b:99999/"]) {
  test(`what is no URL of a request: ${url}`, () => assert.throws(() => parse(url), TypeError));
}

test("requests and responses", async () => {
  const request = new OwnRequest("https://a.b/c?d#e", { method: "post", body: new URLSearchParams({ x: "1 2" }).toString(), headers: { "X-A": "b" } });
  assert.deepEqual([request.method, request.url, request.headers.get("x-a"), await request.text()], ["POST", "https://a.b/c?d", "b", "x=1+2"]);
  await assert.rejects(request.text(), /the body was read already/);
  assert.throws(() => new OwnRequest("/x"), /"\/x" is no URL: a request needs a whole one/);
  assert.throws(() => new OwnRequest("https://a.b", { body: "x" }), /the method GET has no body/);
  const response = OwnResponse.json({ a: 1 }, { status: 201 });
  assert.deepEqual([response.ok, response.headers.get("content-type"), await response.clone().json(), response.bodyUsed], [true, "application/json", { a: 1 }, false]);
  await assert.rejects(new OwnResponse("<html>").json(), /the body is no JSON: "<html>"/);
  const chunks = [];
  for await (const chunk of new OwnResponse("ab").body) chunks.push(...chunk);
  assert.deepEqual(chunks, [97, 98]);
});

test("streams", async () => {
  const pulled = new OwnStream({
    n: 0,
    pull(controller) {
      if (this.n === 3) controller.close();
      else controller.enqueue(this.n++);
    },
  });
  const seen = [];
  for await (const chunk of pulled) seen.push(chunk);
  assert.deepEqual(seen, [0, 1, 2]);
  const started = new OwnStream({ start: (controller) => { controller.enqueue("a"); controller.error(new Error("broken")); } });
  const reader = started.getReader();
  assert.deepEqual(await reader.read(), { done: false, value: "a" });
  await assert.rejects(reader.read(), /broken/);
  let cancelled;
  for await (const chunk of new OwnStream({ pull: (controller) => controller.enqueue(1), cancel: () => (cancelled = true) })) if (chunk) break;
  assert.equal(cancelled, true);
  const whole = [];
  for await (const chunk of OwnStream.from([1, 2])) whole.push(chunk);
  assert.deepEqual(whole, [1, 2]);
});

test("signals", () => {
  const controller = new abort.AbortController();
  const seen = [];
  controller.signal.addEventListener("abort", (event) => seen.push(event.type), { once: true });
  controller.signal.onabort = () => seen.push("on");
  const any = abort.AbortSignal.any([controller.signal, new abort.AbortSignal()]);
  controller.abort();
  controller.abort();
  assert.deepEqual(seen, ["on", "abort"]);
  assert.equal(controller.signal.reason.name, "AbortError");
  assert.equal(any.aborted, true);
  assert.throws(() => any.throwIfAborted(), { name: "AbortError" });
});

test("clones", () => {
  const value = { a: [1, { b: new Date(3) }], m: new Map([["x", new Set([1])]]), u: new Uint8Array([1, 2]), e: new RangeError("no"), n: null };
  value.self = value;
  const copy = clone(value);
  assert.deepEqual(copy, value);
  assert.notEqual(copy.a, value.a);
  assert.equal(copy.self, copy);
  assert.throws(() => clone({ f() {} }), { name: "DataCloneError" });
});

const logged = [
  [["%s is %d", "x", "3", { a: 1 }], "x is 3 { a: 1 }"],
  [["100%", 1], "100% 1"],
  [[[1, "a", null, undefined]], '[ 1, "a", null, undefined ]'],
  [[new Map([["a", 1]]), new Set([2])], 'Map(1) { "a" => 1 } Set(1) { 2 }'],
  [[{ "a-b": -0, f() {} }], '{ "a-b": -0, f: [function f] }'],
  [[new Uint8Array(2)], "Uint8Array(2) [ 0, 0 ]"],
];

for (const [values, expected] of logged) test(`the log shows ${expected}`, () => assert.equal(format(...values), expected));

test("errors and circles are shown", () => {
  const circle = {};
  circle.a = circle;
  assert.equal(format(circle), "{ a: [circular] }");
  assert.match(format(new TypeError("no", { cause: new Error("why") })), /^TypeError: no\n[^]*caused by Error: why/);
});

/** A host with what the web APIs need. */
function host() {
  const lines = [];
  connect(() => ({
    "tenon:plugin/log": { write: (level, message) => lines.push(`${level}: ${message}`) },
    "wasi:random/random": { getRandomBytes: (count) => crypto.getRandomValues(new Uint8Array(Math.min(count, 3))) },
    "wasi:clocks/monotonic-clock": { now: () => performance.now() * 1e6, waitFor: (time) => new Promise((resolve) => setTimeout(resolve, time / 1e6)) },
  }));
  return lines;
}

test("the console writes to the log, with levels and groups", () => {
  const lines = host();
  logging.log("a");
  logging.group("g");
  logging.warn("b %j", { c: 1 });
  logging.groupEnd();
  logging.assert(false, "d");
  logging.count();
  assert.deepEqual(lines, ["info: a", "info: g", 'warn:   b {"c":1}', "error: assertion failed: d", "info: default: 1"]);
});

test("randomness", () => {
  host();
  const drawn = Array.from({ length: 1000 }, random);
  assert.ok(drawn.every((each) => each >= 0 && each < 1));
  assert.ok(Math.abs(drawn.reduce((sum, each) => sum + each) / 1000 - 0.5) < 0.06);
  assert.match(ownCrypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.throws(() => ownCrypto.getRandomValues(new Float64Array(1)), { name: "TypeMismatchError" });
  assert.throws(() => ownCrypto.subtle, /@noble\/hashes/);
});

test("timers", async () => {
  const lines = host();
  const seen = [];
  const interval = every(() => seen.push("tick"), 10);
  const cleared = later(() => seen.push("never"), 20);
  clear(cleared);
  later(() => { throw new Error("late"); }, 5);
  await new Promise((resolve) => later((value) => { seen.push(value); resolve(); }, 200, "end"));
  clear(interval);
  assert.equal(seen.at(-1), "end");
  assert.ok(seen.filter((each) => each === "tick").length >= 2);
  assert.match(lines[0], /^error: a timer's function failed: Error: late/);
});
