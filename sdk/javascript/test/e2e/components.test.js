/** Plugins as components, in a host. Without `TENON_BIN`, which names the `tenon` command, they are skipped. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";

import { serve, start, unavailable } from "../support/tenon.js";
import { plugin, project } from "../support/templates.js";

const component = (what, run) => test(what, { skip: unavailable, timeout: 300_000 }, run);

const head = 'import { ToolError, TenonError, config, hook, log, secrets, state, tool, veto } from "@tenon/sdk";\n';

for (const language of ["javascript", "typescript"]) {
  component(`the template of a tool in ${language}`, async (t) => {
    const { call } = await start(t, project(t, "tool", { language }));
    assert.deepEqual(await call("greet", { name: "Ada" }), { stdout: "Hello, Ada!", stderr: "", status: 0 });
    const refused = await call("greet", { name: " " });
    assert.match(refused.stdout + refused.stderr, /`name` is empty: say whom to greet/);
    const wrong = await call("greet", { nam: "Ada" });
    assert.match(wrong.stderr, /nam/);
    assert.notEqual(wrong.status, 0);
  });
}

const trials = [
  ["hook", ["hook", "message-sending", "--context", '{"message":"Hi"}'], /"message": "Hi\\nSent with hello"/],
  ["provider", ["complete", "hello/parrot", "--prompt", "Polly wants a cracker"], /^Polly wants a cracker$/],
  ["eval", ["eval", "hello/concise", "--subject", '{"output":"one two three four"}', "--options", '{"most":3}'], /^fail \(0\.75\)\n {2}fail.* words: it has 4 words, and 3 are the most$/],
  ["resource", ["resources", "read", "hello", "planets://3"], /Earth/],
  ["prompt", ["prompts", "get", "hello", "explain", "topic=tides"], /Explain tides to a beginner\./],
];

for (const [world, command, expected] of trials) {
  component(`the template of the world ${world}`, async (t) => {
    const { run } = await start(t, project(t, world));
    const { stdout, stderr, status } = await run(command);
    assert.equal(status, 0, stderr);
    assert.match(stdout, expected);
  });
}

component("dependencies from npm: an ES module and a CommonJS module", async (t) => {
  const at = plugin(t, {
    "plugin.ts": `${head}
      import ms from "ms";
      import { titleCase } from "title-case";
      import words from "./words.json";
      tool({
        name: "title",
        description: "Writes a title.",
        input: { text: { type: "string" }, every: { type: "string", default: "2h" } },
        handler: ({ text, every }) => ({ title: titleCase(text), every: ms(every as ms.StringValue), word: words.word }),
      });`,
    "words.json": '{ "word": "tea" }',
  });
  const { call } = await start(t, at);
  assert.deepEqual(JSON.parse((await call("title", { text: "a walk in the park" })).stdout), { title: "A Walk in the Park", every: 7200000, word: "tea" });
});

component("a task list that keeps its state", async (t) => {
  const at = plugin(
    t,
    {
      "plugin.js": `${head}
        tool({
          name: "add",
          description: "Adds a task.",
          input: { task: { type: "string" } },
          handler({ task }) {
            const tasks = state.update("tasks", (tasks = []) => [...tasks, task]);
            return \`\${tasks.length} tasks, \${state.increment("added")} added\`;
          },
        });
        tool({ name: "list", description: "Lists the tasks.", handler: () => state.get("tasks", []).join("\\n") });
        tool({ name: "other", description: "Reads a scope that is not granted.", handler: () => state.bucket("user").get("x") });`,
    },
    { capabilities: { state: ["project"] } },
  );
  const { call } = await start(t, at);
  assert.equal((await call("add", { task: "Tee kaufen – süß" })).stdout, "1 tasks, 1 added");
  assert.equal((await call("add", { task: "100% 😀" })).stdout, "2 tasks, 2 added");
  assert.equal((await call("list")).stdout, "Tee kaufen – süß\n100% 😀");
  assert.match((await call("other")).stderr, /denied/);
});

/** A server that answers with what it was asked. */
async function listen(t) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      if (url === "/redirect") return response.writeHead(302, { location: "/after" }).end();
      if (url === "/slow") return setTimeout(() => response.end("late"), 10_000).unref();
      if (url === "/half") return response.write("half");
      if (url === "/large") return response.end("x".repeat(1_000_000));
      if (url === "/parts") {
        response.write("one ");
        return setTimeout(() => response.end("two"), 50);
      }
      if (url === "/wait") return setTimeout(() => response.end("waited"), 200);
      response.writeHead(url === "/missing" ? 404 : 200, { "content-type": "application/json", "x-a": ["1", "2"] });
      response.end(JSON.stringify({ method, url, body, authorization: headers.authorization, length: headers["content-length"] }));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close(() => undefined).closeAllConnections());
  return server.address().port;
}

component("a web client with a secret", async (t) => {
  const port = await listen(t);
  const at = plugin(
    t,
    {
      "plugin.js": `${head}
        const base = "http://localhost:${port}";
        const of = (name, handler, input = {}) => tool({ name, description: name, input, handler });
        of("post", async ({ body }) => {
          const response = await fetch(new URL("/a?b=c d", base), { method: "POST", headers: { authorization: \`Bearer \${secrets.get("api-key")}\` }, body: JSON.stringify({ body }) });
          return { ...await response.json(), status: response.status, a: response.headers.get("X-A"), authorized: true };
        }, { body: { type: "string" } });
        of("status", async () => { const r = await fetch(base + "/missing"); return \`\${r.ok} \${r.status}\`; });
        of("redirect", async () => { const r = await fetch(base + "/redirect"); return \`\${r.redirected} \${new URL(r.url).pathname} \${(await r.json()).url}\`; });
        of("large", async () => (await (await fetch(base + "/large")).text()).length);
        of("parts", async () => { const decoder = new TextDecoder(); const parts = []; for await (const chunk of (await fetch(base + "/parts")).body) parts.push(decoder.decode(chunk)); return parts.join("|"); });
        of("parallel", async () => { const begun = performance.now(); await Promise.all([1, 2, 3].map(() => fetch(base + "/wait").then((r) => r.text()))); return performance.now() - begun < 500; });
        of("timeout", async () => { try { await fetch(base + "/slow", { signal: AbortSignal.timeout(100) }); } catch (error) { return \`\${error.name}: \${error.message}\`; } });
        of("broken_off", async () => { const r = await fetch(base + "/half", { signal: AbortSignal.timeout(300) }); try { await r.text(); } catch (error) { return error.name; } });
        of("upload", async () => { async function* body() { yield new TextEncoder().encode("a"); yield new TextEncoder().encode("b"); } const r = await fetch(base, { method: "PUT", body: body() }); return (await r.json()).body; });
        of("elsewhere", async () => { await fetch("http://localhost:1/x"); });
        of("forgotten", () => { fetch(base + "/wait"); return "done"; });
        of("unknown", () => secrets.get("other"));`,
    },
    { capabilities: { network: [`http://localhost:${port}/*`], secrets: ["api-key"] } },
  );
  const { call } = await start(t, at);
  const env = { API_KEY: "k-123456" };
  const posted = JSON.parse((await call("post", { body: "ü" }, { env })).stdout);
  assert.deepEqual([posted.method, posted.url, posted.body, posted.status, posted.a, posted.length], ["POST", "/a?b=c%20d", '{"body":"ü"}', 200, "1, 2", "13"]);
  // The host masks the secret wherever it shows what the plugin says, and the server has got it.
  assert.match(posted.authorization, /^Bearer /);
  assert.doesNotMatch(posted.authorization, /123456/);
  for (const [tool, expected] of [
    ["status", "false 404"],
    ["redirect", "true /after /after"],
    ["large", "1000000"],
    ["parts", "one |two"],
    ["parallel", "true"],
    ["timeout", "TimeoutError: it took longer than 100 ms"],
    ["broken_off", "TimeoutError"],
    ["upload", "ab"],
  ]) {
    const { stdout, stderr } = await call(tool, {}, { env });
    assert.equal(stdout, expected, `${tool}: ${stderr}`);
  }
  assert.match((await call("elsewhere", {}, { env })).stderr, /denied: TypeError: GET http:\/\/localhost:1\/x failed: it is not granted.*\(plugin\.js:17:\d+\)/);
  assert.match((await call("forgotten", {}, { env })).stderr, /tool "forgotten" has ended, and nobody awaited `fetch` \(plugin\.js:18:\d+\)/);
  assert.match((await call("unknown", {}, { env })).stderr, /denied/);
});

component("a web client whose manifest requests nothing", async (t) => {
  const at = plugin(t, { "plugin.js": `${head}tool({ name: "get", description: "Gets.", handler: () => fetch("https://a.b/c") });` });
  const { call } = await start(t, at);
  assert.match((await call("get")).stderr, /`network` is not granted; plugin\.toml requests it with `network = \["https:\/\/a\.b\/\*"\]` under \[capabilities\]/);
});

component("a guard that rewrites and vetoes", async (t) => {
  const at = plugin(t, {
    "plugin.js": `${head}
      tool({ name: "delete", description: "Deletes.", input: { path: { type: "string" } }, handler: ({ path }) => \`\${path} is deleted\` });
      hook("before-tool-call", { priority: 10 }, ({ arguments: { path } }) => {
        if (path.startsWith("/")) return veto("it is no file of the project");
      });
      hook("before-tool-call", (context) => { context.arguments.path = "trash/" + context.arguments.path; });`,
  });
  const { call, run } = await start(t, at);
  assert.equal((await call("delete", { path: "a.txt" })).stdout, "trash/a.txt is deleted");
  assert.match((await call("delete", { path: "/etc/passwd" })).stderr, /vetoed it: it is no file of the project/);
  assert.equal((await run(["hook"])).stdout, "before-tool-call  sample");
});

component("timers, randomness, the log and mistakes", async (t) => {
  const at = plugin(t, {
    "plugin.ts": `${head}
      const of = (name: string, handler: () => unknown) => tool({ name, description: name, handler }); console.log("built");
      of("timers", async () => {
        const begun = performance.now();
        let ticks = 0;
        const interval = setInterval(() => ticks++, 20);
        setTimeout(() => { ticks = -1000; }, 60_000);
        await Promise.all([new Promise((resolve) => setTimeout(resolve, 150)), new Promise((resolve) => setTimeout(resolve, 200))]);
        clearInterval(interval);
        const took = performance.now() - begun;
        return ticks >= 5 && took >= 199 && took < 1000;
      });
      of("random", () => \`\${Math.random()} \${crypto.randomUUID()}\`);
      of("console", () => { console.warn("careful: %o", { n: [1] }); log.error("bad", { code: 3 }); });
      of("url", () => \`\${new URL("../x?y=ü#z", "https://bücher.example/a/b/c").href} \${new URLSearchParams({ a: "1 2" })} \${atob(btoa("hi"))} \${structuredClone({ a: [1] }).a[0]}\`);
      interface Place { city?: { name: string } }
      function inner(place: Place): string {
        return place.city!.name;
      }
      of("broken", async () => {
        await null;
        return inner({});
      });
      of("never", () => new Promise(() => {}));
      of("recursive", () => { const again = (): number => again() + 1; return again(); });
      of("function", () => () => "x");`,
  });
  const { call } = await start(t, at);
  const begun = Date.now();
  assert.equal((await call("timers")).stdout, "true");
  assert.ok(Date.now() - begun < 30_000, "a timer that is left over keeps nobody");
  const drawn = [await call("random"), await call("random")].map(({ stdout }) => stdout);
  assert.notEqual(drawn[0], drawn[1]);
  const logged = (await call("console", {}, { env: { TENON_LOG: "debug" } })).stderr;
  assert.match(logged, /WARN .*careful: \{ n: \[ 1 \] \}/);
  assert.match(logged, /ERROR .*bad.*code="?3/);
  assert.equal((await call("url")).stdout, "https://xn--bcher-kva.example/a/x?y=%C3%BC#z a=1+2 hi 1");
  const { stderr } = await call("broken");
  assert.match(stderr, /failed: TypeError: cannot read property 'name' of undefined \(plugin\.ts:19:\d+\)/);
  assert.match(stderr, /tool "broken" failed: .*at .*plugin\.ts:19.*at .*plugin\.ts:23/);
  assert.doesNotMatch(stderr, /wasm|trap|panick/);
  assert.match((await call("never")).stderr, /failed: the call waits for a promise that nothing resolves/);
  assert.match((await call("function")).stderr, /failed: TypeError: the result is a function: .* \(plugin\.ts:3:\d+\)/);
  assert.match((await call("recursive")).stderr, /call depth|InternalError/);
});

component("everything else a plugin can contribute", async (t) => {
  const at = plugin(
    t,
    {
      "plugin.js": `
        import { config, image, inference, notify, prompt, provider, resource, tool, tools, user } from "@tenon/sdk";
        provider({
          name: "birds", description: "Birds.", models: [{ id: "parrot" }],
          async *stream({ messages }) {
            for (const word of messages.at(-1).text.split(" ")) yield word + " ";
            return { usage: { output: 2 } };
          },
        });
        tool({ name: "double", description: "Doubles.", input: { n: { type: "number" } }, handler: ({ n }) => ({ doubled: n * 2 }) });
        tool({ name: "through", description: "Calls the other.", async handler() { return (await tools.call("sample__double", { n: 21 })).structured; } });
        tool({ name: "ask", description: "Asks.", async handler() { const { answer, content } = await user.ask("Where?", { city: { type: "string" } }); return answer + " " + content?.city; } });
        tool({ name: "model", description: "Asks a model.", async handler() { return (await inference.complete({ model: "parrot", prompt: "Hi you" })).text; } });
        tool({ name: "setting", description: "Reads one.", handler: () => config.get("unit", "none") });
        tool({ name: "picture", description: "Has one.", handler: () => image("iVBORw0KGgo=", "image/png") });
        resource("a://{b}", { description: "B.", subscribe: true, complete: { b: ["cat"] }, list: () => [{ variables: { b: "cat" } }], handler: ({ b }) => b });
        prompt({ name: "p", description: "P.", handler: () => "x" });`,
    },
    { capabilities: { tools: ["sample__double"], user: ["ask"], providers: ["parrot"] } },
  );
  const { call, run } = await start(t, at);
  assert.deepEqual(JSON.parse((await call("through")).stdout), { doubled: 42 });
  assert.equal((await call("model")).stdout, "Hi you");
  assert.equal((await call("setting")).stdout, "none");
  assert.match((await call("ask")).stderr, /denied/);
  assert.match((await run(["complete", "sample/parrot", "--prompt", "Polly wants"])).stdout, /^Polly wants/);
  assert.match((await run(["resources", "list"])).stdout, /a:\/\/cat/);
  assert.match((await run(["resources", "read", "sample", "a://cat"])).stdout, /cat/);
});

component("calls of a shared instance go on together, and are cancelled one by one", async (t) => {
  const port = await listen(t);
  const at = plugin(
    t,
    {
      "plugin.js": `${head}
        let calls = 0;
        tool({
          name: "sleep", description: "Sleeps.", input: { ms: { type: "number" } },
          async handler({ ms }, { signal }) {
            calls++;
            await new Promise((resolve, reject) => {
              setTimeout(resolve, ms);
              signal.addEventListener("abort", () => { console.warn("aborted"); reject(signal.reason); });
            });
            return calls;
          },
        });
        tool({ name: "wait", description: "Waits.", handler: async () => (await fetch("http://localhost:${port}/wait")).text() });`,
    },
    { capabilities: { network: [`http://localhost:${port}/*`] }, runtime: 'instance = "shared"\n' },
  );
  const { home } = await start(t, at);
  const client = await serve(t, at, home);
  assert.equal(await client.call("sample__sleep", { ms: 1 }), "1");
  const begun = Date.now();
  const all = await Promise.all([client.call("sample__sleep", { ms: 600 }), client.call("sample__wait"), client.call("sample__wait"), client.call("sample__sleep", { ms: 300 })]);
  assert.deepEqual(all, ["3", "waited", "waited", "3"]);
  assert.ok(Date.now() - begun < 1100, "they go on together");
  const { id } = client.begin("sample__sleep", { ms: 30_000 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  client.cancel(id);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(await client.call("sample__sleep", { ms: 1 }), "5", "the instance goes on");
  assert.match(client.stderr(), /WARN .*aborted/);
});
