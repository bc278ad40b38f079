/** What the builder finds in plugins. */

import assert from "node:assert/strict";
import test from "node:test";

import { imports } from "../build/capabilities.js";
import { describe } from "../build/describe.js";
import { read } from "../build/project.js";
import { world } from "../build/wit.js";
import { WORLDS, plugin, project } from "./support/templates.js";

test("all problems are told at once", async (t) => {
  const at = plugin(t, { "plugin.js": 'import { tool } from "@tenon/sdk";\ntool({ name: "a", description: "A." });\ntool({ name: "b", description: "B.", handler: 3 });\n' });
  await assert.rejects(async () => describe(read(at)), (error) => error.problems.length === 2);
});

test("a plugin that never ends while it is loaded is given up", { timeout: 60_000 }, async (t) => {
  const at = plugin(t, { "plugin.js": "for (;;);\n" });
  await assert.rejects(async () => describe(read(at)), /the plugin was not loaded after 20 s/);
});

for (const name of WORLDS) {
  for (const language of ["javascript", "typescript"]) {
    test(`the template ${name} in ${language} exports its world`, async (t) => {
      const { worlds } = await describe(read(project(t, name, { language })));
      assert.deepEqual(worlds, [name]);
    });
  }
}

test("what a plugin defines, uses and requests makes its world", async (t) => {
  const at = plugin(
    t,
    {
      "plugin.js": `
        import { prompt, resource, tool } from "@tenon/sdk";
        tool({ name: "now", description: "Says the time.", handler: () => performance.now() });
        resource("a://{b}", { description: "B.", subscribe: true, complete: { b: ["c"] }, handler: () => "x" });
        prompt({ name: "p", description: "P.", handler: () => "x" });`,
    },
    { capabilities: { secrets: ["key"], state: ["project"], network: ["https://a.b/*"], filesystem: [] } },
  );
  const { capabilities } = read(at);
  const { worlds, exports, web, names } = await describe(read(at));
  assert.deepEqual(names, { tools: ["now"], hooks: [], resources: ["a://{b}"], prompts: ["p"], evaluations: [], providers: [] });
  assert.equal(
    world({ worlds, exports, imports: imports(capabilities, web) }),
    `package local:plugin;

world component {
    include tenon:plugin/tool@0.2.0;
    include tenon:plugin/%resource@0.2.0;
    include tenon:plugin/prompt@0.2.0;
    export tenon:plugin/subscriptions@0.2.0;
    export tenon:plugin/completions@0.2.0;
    import wasi:clocks/monotonic-clock@0.3.0;
    import tenon:plugin/secrets@0.2.0;
    import wasi:keyvalue/store@0.2.0-draft2;
    import wasi:keyvalue/atomics@0.2.0-draft2;
}
`,
  );
});
