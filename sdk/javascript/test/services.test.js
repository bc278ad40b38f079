/** What the host lends, as a test scripts it. */

import assert from "node:assert/strict";
import test from "node:test";

import { TenonError, config, inference, log, memory, messaging, notify, secrets, state, tools, user } from "../src/index.js";
import { Host } from "../testing/index.js";

test("settings, the log and news", () => {
  const host = new Host({ settings: { unit: "K" } });
  host.run(() => {
    assert.equal(config.get("unit"), "K");
    assert.equal(config.get("other", 3), 3);
    assert.deepEqual(config.all(), { unit: "K" });
    log.warn("careful", { n: 1, text: "x" });
    notify.resourceUpdated("a://b");
  });
  assert.deepEqual(host.logged, [{ level: "warn", message: "careful", fields: { n: "1", text: "x" } }]);
  assert.deepEqual(host.resourceUpdates, ["a://b"]);
});

const denied = [
  ["secrets", () => secrets.get("api-key"), 'secrets = ["api-key"]'],
  ["state", () => state.get("x"), 'state = ["project"]'],
  ["state of a scope", () => state.bucket("user").get("x"), 'state = ["user"]'],
  ["user", () => user.ask("What?", {}), 'user = ["ask"]'],
  ["pages", () => user.askUrl("Pay", "https://a.b"), 'user = ["ask-url"]'],
  ["models", () => inference.complete("Hi"), 'providers = ["default"]'],
  ["tools", () => tools.call("a__b"), 'tools = ["a__b"]'],
  ["messages", () => messaging.send({ channel: "ops", text: "x" }), 'messaging = ["ops"]'],
  ["memory", () => memory.search("x"), 'memory = ["search"]'],
];

for (const [what, use, line] of denied) {
  test(`what is not granted names the line that requests it: ${what}`, async () => {
    const using = new Host().run(async () => use());
    await assert.rejects(using, (error) => error instanceof TenonError && error.code === "denied" && error.message.includes(`\`${line}\``));
  });
}

test("outside of a host, it is told how to have one", () => {
  assert.throws(() => config.get("x"), /within `new Host\(\{ … \}\)\.run/);
});

test("secrets", () => {
  new Host({ secrets: { key: "s3cret", unset: undefined } }).run(() => {
    assert.equal(secrets.get("key"), "s3cret");
    assert.throws(() => secrets.get("unset"), { code: "not-found" });
    assert.throws(() => secrets.get("other"), { code: "denied" });
  });
});

test("state", () => {
  const host = new Host({ state: { project: { tasks: ["a"] } } });
  host.run(() => {
    assert.deepEqual(state.get("tasks"), ["a"]);
    assert.deepEqual(state.update("tasks", (tasks = []) => [...tasks, "ü%"]), ["a", "ü%"]);
    assert.equal(state.increment("count"), 1);
    assert.equal(state.increment("count", 4), 5);
    state.set("other", null);
    assert.deepEqual(state.keys(), ["count", "other", "tasks"]);
    assert.equal(state.has("other"), true);
    state.delete("other");
    assert.equal(state.get("other", "gone"), "gone");
    assert.throws(() => state.set("x", undefined), /JSON cannot say; `state\.delete` removes a key/);
    assert.throws(() => state.update("x", async () => 1), /returned a promise/);
    assert.throws(() => state.bucket("session").get("x"), { code: "denied" });
  });
  assert.deepEqual(host.state("project"), { tasks: ["a", "ü%"], count: 5 });
});

test("an update that others were faster than is made again", () => {
  new Host({ state: ["project"] }).run(() => {
    let calls = 0;
    const value = state.update("n", (n = 0) => {
      if (++calls === 1) state.set("n", 10);
      return n + 1;
    });
    assert.deepEqual([value, calls], [11, 2]);
  });
});

test("the user", async () => {
  const host = new Host({ user: (message) => (message === "Where?" ? { city: "Graz" } : "declined"), pages: "accepted" });
  await host.run(async () => {
    assert.deepEqual(await user.ask("Where?", { city: { type: "string" } }), { answer: "accepted", content: { city: "Graz" } });
    assert.deepEqual(await user.ask("Why?", { why: { type: "string" } }), { answer: "declined" });
    assert.equal(await user.askUrl("Pay", "https://a.b"), "accepted");
  });
  assert.equal(host.questions[0].schema.additionalProperties, false);
});

test("models, tools, messages and memory", async () => {
  const host = new Host({
    models: { default: ({ messages }) => ({ text: `You said ${messages[0].text}`, usage: { input: 1 } }) },
    tools: { a__b: ({ n }) => ({ doubled: n * 2 }) },
    messaging: ["ops"],
    memory: ["Ada likes tea", { text: "x", score: 0.5, source: "notes" }],
  });
  await host.run(async () => {
    const { text, usage } = await inference.complete({ prompt: "Hi", maxTokens: 10 });
    assert.deepEqual([text, usage.input], ["You said Hi", 1]);
    await assert.rejects(inference.complete({ model: "other", prompt: "x" }), { code: "denied" });
    assert.deepEqual((await tools.call("a__b", { n: 2 })).structured, { doubled: 4 });
    assert.deepEqual((await tools.list()).map(({ name }) => name), ["a__b"]);
    await messaging.send({ channel: "ops", text: "x" });
    await assert.rejects(messaging.send({ channel: "dev", text: "x" }), { code: "denied" });
    assert.deepEqual(await memory.search("tea", { limit: 1 }), [{ text: "Ada likes tea", score: 1 }]);
  });
  assert.deepEqual(host.messages, [{ channel: "ops", text: "x", extra: undefined }]);
});

test("requests", async () => {
  const host = new Host({ fetch: { "POST https://a.b/*": { ok: true }, "https://a.b/x": "text" } });
  await host.run(async () => {
    assert.equal(await (await fetch("https://a.b/x")).text(), "text");
    assert.deepEqual(await (await fetch("https://a.b/y", { method: "POST", body: "z" })).json(), { ok: true });
    await assert.rejects(fetch("https://c.d/"), /the test has no answer to GET https:\/\/c\.d\//);
  });
  assert.equal(host.requests.length, 3);
  await assert.rejects(new Host().run(() => fetch("https://a.b/x")), (error) => /network = \["https:\/\/a\.b\/\*"\]/.test(error.cause.message));
});

test("a script with a strange member is refused", () => {
  assert.throws(() => new Host({ setting: {} }), /a host has no `setting`/);
});
