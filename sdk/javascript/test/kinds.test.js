/** Hooks, resources, prompts, evaluations and providers. */

import assert from "node:assert/strict";
import test, { afterEach } from "node:test";

import { TenonError, evaluation, finding, hook, prompt, provider, resource, text, veto } from "../src/index.js";
import { hooks } from "../src/exports/hooks.js";
import { forget } from "../src/registry.js";
import { UriTemplate } from "../src/uri-template.js";
import { Host } from "../testing/index.js";

afterEach(forget);

const decide = (handler, context) => new Host().handle(hook("before-tool-call", handler), context);
const call = { tool: "x", arguments: { path: "a" } };

const outcomes = [
  ["nothing", () => undefined, { outcome: "continue", context: call }],
  ["the same context", (context) => context, { outcome: "continue", context: call }],
  ["a change in place", (context) => void (context.arguments.path = "b"), { outcome: "replace", context: { tool: "x", arguments: { path: "b" } } }],
  ["another context", (context) => ({ ...context, arguments: {} }), { outcome: "replace", context: { tool: "x", arguments: {} } }],
  ["a veto", () => veto("no"), { outcome: "veto", reason: "no" }],
];

for (const [what, handler, expected] of outcomes) {
  test(`a hook decides: ${what}`, async () => assert.deepEqual(await decide(handler, call), expected));
}

test("a hook that returns something else fails", async () => {
  await assert.rejects(decide(() => "no", call), /the handler returned a string: return the context, `veto\("why"\)` or nothing/);
});

test("a point that reports what has happened allows no veto", async () => {
  await assert.rejects(new Host().handle(hook("after-plan", () => veto("no")), {}), /the point after-plan reports what has happened, and allows no veto/);
});

test("handlers of a point run by their priority, and are listed as one", async () => {
  hook("acme:deploy", (context) => void context.seen.push("usual"));
  hook("acme:deploy", { priority: 5 }, (context) => void context.seen.push("early"));
  assert.deepEqual(await hooks.listHooks(), [{ point: "acme:deploy", mode: "enforce", priority: 5 }]);
  const outcome = await hooks.handleEvent({ point: "acme:deploy", eventContext: '{"seen":[]}' }, { callId: "1" });
  assert.deepEqual(outcome, { tag: "replace", val: '{"seen":["early","usual"]}' });
});

const templates = [
  ["notes://{name}", "notes://a%20b", { name: "a b" }],
  ["notes://{name}", "notes://a/b", undefined],
  ["notes://{name}", "notes://%", undefined],
  ["files:///{+path}", "files:///a/b.txt", { path: "a/b.txt" }],
  ["git://{repo}{/parts*}", "git://x/a/b", { repo: "x", parts: ["a", "b"] }],
  ["towns://{name}{?year,tag*}", "towns://graz?year=2025&tag=a&tag=b", { name: "graz", year: "2025", tag: ["a", "b"] }],
  ["towns://{name}{?year}", "towns://graz", { name: "graz" }],
  ["a://b", "a://b", {}],
];

for (const [template, uri, expected] of templates) {
  test(`the template ${template} and ${uri}`, () => {
    const parsed = new UriTemplate(template);
    assert.deepEqual(parsed.match(uri), expected);
    if (expected) assert.equal(parsed.expand(expected), uri);
  });
}

test("a resource is read, listed and completed", async () => {
  const note = resource("notes://{name}", {
    description: "A note.",
    mimeType: "text/markdown",
    list: () => [{ variables: { name: "to do" }, title: "To do" }, { uri: "notes://x", name: "x" }],
    complete: { name: ["shopping", "Travel"] },
    handler({ name }) {
      if (name === "none") throw new TenonError("not-found", "there is no such note");
      return `# ${name}`;
    },
  });
  const host = new Host();
  assert.deepEqual(await host.readResource(note, "notes://a%20b"), [{ uri: "notes://a%20b", mimeType: "text/markdown", text: "# a b" }]);
  await assert.rejects(host.readResource(note, "notes://none"), { code: "not-found" });
  await assert.rejects(host.readResource(note, "other://x"), { code: "not-found", message: "there is no resource other://x" });
  assert.deepEqual((await host.listResources(note)).map(({ uri, name, title }) => [uri, name, title]), [["notes://to%20do", "to do", "To do"], ["notes://x", "x", undefined]]);
  assert.deepEqual(await host.completeArgument(note, "name", "t"), ["Travel"]);
});

const contents = [
  ["bytes", new Uint8Array([1]), { mimeType: "application/octet-stream", blob: new Uint8Array([1]) }],
  ["an object", { a: 1 }, { mimeType: "application/json", text: '{"a":1}' }],
  ["a string", "x", { mimeType: "text/plain", text: "x" }],
];

for (const [what, value, expected] of contents) {
  test(`a resource contains ${what}`, async () => {
    const defined = resource("a://b", { description: "x", handler: () => value });
    assert.deepEqual(await new Host().readResource(defined, "a://b"), [{ uri: "a://b", ...expected }]);
  });
}

test("a prompt says messages of both sides", async () => {
  const talk = prompt({
    name: "talk",
    description: "Talks.",
    arguments: { topic: {}, tone: { optional: true, complete: (typed, others) => [`${typed}ly`, others.topic] } },
    handler: ({ topic }) => ["Hi", { role: "assistant", content: text("Hello") }, topic],
  });
  const host = new Host();
  const { messages } = await host.getPrompt(talk, { topic: "tides" });
  assert.deepEqual(messages.map(({ role, content }) => [role, content.text]), [["user", "Hi"], ["assistant", "Hello"], ["user", "tides"]]);
  assert.deepEqual(await host.completeArgument(talk, "tone", "kind", { topic: "x" }), ["kindly", "x"]);
  await assert.rejects(host.getPrompt(talk, {}), { code: "invalid-input", message: 'prompt "talk": the argument `topic` is missing' });
  await assert.rejects(host.getPrompt(talk, { topik: "x" }), { message: 'prompt "talk" has no argument `topik`: did you mean `topic`?' });
});

test("a subject without an output is not judged", async () => {
  const brief = evaluation({ name: "e", description: "E.", handler: () => 1 });
  await assert.rejects(new Host().evaluate(brief, { input: "x" }), /evaluation "e": the subject has no "output"/);
});

const evaluations = [
  ["a score", () => 0.5, { score: 0.5, verdict: "fail", findings: [] }],
  ["true", () => true, { score: 1, verdict: "pass", findings: [] }],
  ["findings", () => [finding("a", true, "yes"), finding("b", 0.5, "half")], { score: 0.5, verdict: "fail", findings: [{ criterion: "a", verdict: "pass", reason: "yes" }, { criterion: "b", verdict: "fail", score: 0.5, reason: "half" }] }],
  ["no findings", () => [], { score: 0, verdict: "inconclusive", findings: [] }],
  ["a whole one", () => ({ score: 0.7, verdict: "pass", reason: "good" }), { score: 0.7, verdict: "pass", findings: [{ criterion: "score", verdict: "pass", score: 0.7, reason: "good" }] }],
];

for (const [what, handler, expected] of evaluations) {
  test(`an evaluation returns ${what}`, async () => {
    assert.deepEqual(await new Host().evaluate(evaluation({ name: "e", description: "E.", handler }), { output: "x" }), expected);
  });
}

test("a score beyond its range fails", async () => {
  await assert.rejects(new Host().evaluate(evaluation({ name: "e", description: "E.", handler: () => 2 }), { output: "x" }), /the score is 2 and has to be a number from 0 to 1/);
});

test("a provider that streams answers in one piece as well", async () => {
  const bird = provider({
    name: "birds",
    description: "Birds.",
    models: ["bird"],
    async *stream({ messages }) {
      yield messages[0].text;
      yield "!";
      yield { type: "tool-call-start", index: 0, id: "1", name: "fly" };
      yield { type: "tool-call-arguments", index: 0, fragment: '{"to":' };
      yield { type: "tool-call-arguments", index: 0, fragment: '"sea"}' };
      return { stopReason: "tool-use", usage: { output: 2 } };
    },
  });
  const { text: said, parts, stopReason, usage } = await new Host().complete(bird, { model: "bird", prompt: "Hi" });
  assert.equal(said, "Hi!");
  assert.deepEqual(parts[1], { type: "tool-call", id: "1", name: "fly", arguments: { to: "sea" } });
  assert.deepEqual([stopReason, usage.output], ["tool-use", 2]);
});
