import assert from "node:assert/strict";
import test, { afterEach } from "node:test";

import { TenonError, ToolError, audio, embedded, image, messaging, resourceLink, text, tool, toolResult } from "../src/index.js";
import { forget } from "../src/registry.js";
import { Host } from "../testing/index.js";

afterEach(forget);

const of = (handler, more = {}) => tool({ name: "sample", description: "A sample.", handler, ...more });
const call = (handler, more) => {
  forget();
  return new Host().callTool(of(handler, more));
};
const answers = async (value) => {
  const { content, structured } = await call(() => value);
  return { content, structured };
};
const says = (said) => ({ type: "text", text: said });

const results = [
  ["a string", "Hi", { content: [says("Hi")], structured: undefined }],
  ["a number", 3, { content: [says("3")], structured: undefined }],
  ["nothing", undefined, { content: [], structured: undefined }],
  ["an object", { a: 1 }, { content: [says('{"a":1}')], structured: { a: 1 } }],
  ["strings", ["a", "b"], { content: [says("a"), says("b")], structured: undefined }],
  ["an array of objects", [{ a: 1 }], { content: [says('[{"a":1}]')], structured: undefined }],
  ["content", [text("a"), "b"], { content: [says("a"), says("b")], structured: undefined }],
  ["an image", image(new Uint8Array([1, 2]), "image/png"), { content: [{ type: "image", data: new Uint8Array([1, 2]), mimeType: "image/png" }], structured: undefined }],
  ["a sound in Base64", audio("AQI=", "audio/wav"), { content: [{ type: "audio", data: new Uint8Array([1, 2]), mimeType: "audio/wav" }], structured: undefined }],
  ["a link", resourceLink({ uri: "a://b", name: "b" }), { content: [{ type: "resource_link", uri: "a://b", name: "b" }], structured: undefined }],
  ["an embedded resource", embedded("a://b", "x", { mimeType: "text/plain" }), { content: [{ type: "resource", resource: { uri: "a://b", mimeType: "text/plain", text: "x" } }], structured: undefined }],
  ["content of MCP", { type: "text", text: "x", annotations: { priority: 1 } }, { content: [{ ...says("x"), annotations: { priority: 1 } }], structured: undefined }],
  ["both", toolResult({ content: "x", structured: { a: 1 } }), { content: [says("x")], structured: { a: 1 } }],
];

for (const [what, value, expected] of results) {
  test(`a result: ${what}`, async () => assert.deepEqual(await answers(value), expected));
}

test("a result is checked against `output`", async () => {
  const output = { sum: { type: "number" } };
  assert.deepEqual((await call(() => ({ sum: 3 }), { output })).structured, { sum: 3 });
  await assert.rejects(call(() => ({ sum: "3" }), { output }), /the result is not what `output` says: `sum` is "3" and has to be a number/);
  await assert.rejects(call(() => ({ sun: 3 }), { output }), /there is no `sun`: did you mean `sum`\?/);
});

test("a `ToolError` is an answer for the model", async () => {
  const { text: said, isError } = await call(() => { throw new ToolError("say whom"); });
  assert.deepEqual([said, isError], ["say whom", true]);
});

test("a `TenonError` keeps its code", async () => {
  const failing = call(() => { throw new TenonError("unavailable", "busy", { retryAfter: 500, data: { a: 1 } }); });
  await assert.rejects(failing, { code: "unavailable", message: "busy", retryAfter: 500, data: { a: 1 } });
});

test("any other exception names its type, its message and the author's line, and the log has the stack", async () => {
  const host = new Host();
  const broken = of(() => undefined.x);
  await assert.rejects(host.callTool(broken), { code: "failed", message: /^TypeError: Cannot read properties of undefined \(reading 'x'\) \(.*tools\.test\.js:\d+:\d+\)$/ });
  assert.match(host.logged[0].message, /^tool "sample" failed: TypeError: .*\n {4}at /);
  assert.equal(host.logged[0].level, "error");
});

test("what is thrown and no error is told as such", async () => {
  await assert.rejects(call(() => { throw "no"; }), /no was thrown, which is no Error/);
});

test("arguments go through JSON and the schema, with defaults", async () => {
  const greet = of(({ name, times }) => name.repeat(times), { input: { name: { type: "string" }, times: { type: "integer", default: 2 } } });
  assert.equal((await new Host().callTool(greet, { name: "a" })).text, "aa");
  await assert.rejects(new Host().callTool(greet, { nam: "a" }), { code: "invalid-input", message: /tool "sample": `name` \(string\) is missing; there is no `nam`: did you mean `name`\?/ });
});

test("a tool is a function", () => {
  const greet = of(({ name }) => `Hi, ${name}`);
  assert.equal(greet({ name: "Ada" }), "Hi, Ada");
  assert.equal(greet.name, "sample");
});

test("a schema of a library gives the schema, and validates", async () => {
  const { z } = await import("zod");
  const input = z.object({ at: z.string().transform((day) => day.toUpperCase()), n: z.number().int().optional() });
  const sample = of(({ at }) => at, { input });
  assert.equal((await new Host().callTool(sample, { at: "monday" })).text, "MONDAY");
  await assert.rejects(new Host().callTool(sample, { at: 3 }), /`at` is 3 and has to be a string/);
});

test("what nobody awaits is told, with its line", async () => {
  const host = new Host({ messaging: ["*"], fetch: () => "x" });
  const sample = of(async () => {
    messaging.send("forgotten");
    await messaging.send("awaited");
    const both = [messaging.send("later"), fetch("https://a.b")];
    await Promise.all(both);
    messaging.send("handled").catch(() => undefined);
  });
  await host.callTool(sample);
  assert.equal(host.logged.length, 1);
  assert.match(host.logged[0].message, /^tool "sample" has ended, and nobody awaited `messaging\.send` \(.*tools\.test\.js:\d+:\d+\): write `await` before it/);
});

test("progress, cancellation and who calls are in the context", async () => {
  const host = new Host({ caller: { sessionId: "s", timeLeft: 5 } });
  const sample = of((_, context) => {
    context.progress(1, 2, "half");
    return `${context.sessionId} ${context.timeLeft} ${context.agentId} ${context.isCancelled} ${context.signal.aborted}`;
  });
  assert.equal((await host.callTool(sample)).text, "s 5 undefined false false");
  assert.deepEqual(host.progress, [{ callId: "call-1", progress: 1, total: 2, message: "half" }]);
});
