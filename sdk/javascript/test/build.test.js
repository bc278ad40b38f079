/** What authors see of mistakes when they build, and what the builder finds in sound plugins. */

import assert from "node:assert/strict";
import test from "node:test";

import { imports } from "../build/capabilities.js";
import { describe } from "../build/describe.js";
import { toText } from "../build/problem.js";
import { read } from "../build/project.js";
import { world } from "../build/wit.js";
import { WORLDS, plugin, project } from "./support/templates.js";

const tool = (more) => `import { tool } from "@tenon/sdk";

tool({
  name: "greet",
  description: "Greets somebody.",
${more}
});
`;

/** Files, and what the author reads. */
const mistakes = [
  ["no plugin file", { "plugin.js": undefined }, "error: there is no plugin: none of plugin.ts, plugin.js, plugin.mts, plugin.mjs\n  hint: write the plugin in `plugin.js` or `plugin.ts`, or name its file as `main` in package.json"],
  ["no manifest", { "plugin.toml": undefined, "plugin.js": "" }, "error: plugin.toml: there is no such file\n  hint: `tenon new NAME --lang javascript` makes a plugin with one"],
  ["a manifest that is none", { "plugin.toml": "[plugin\n", "plugin.js": "" }, /^error: plugin\.toml:1:\d+: /],
  ["an empty plugin", { "plugin.js": "export {};" }, /^error: the plugin defines nothing\n {2}hint: call `tool`, `hook`/],
  ["a syntax error", { "plugin.js": 'import { tool } from "@tenon/sdk";\ntool({ name: "x" ;\n' }, 'error: plugin.js:2:18: Expected "}" but found ";"\n     2 | tool({ name: "x" ;'],
  ["a syntax error in TypeScript", { "plugin.js": undefined, "plugin.ts": "const x: = 3;\n" }, /^error: plugin\.ts:1:10: Unexpected "="\n {5}1 \| const x: = 3;/],
  ["no description", { "plugin.js": tool("  handler: () => 1,").replace(/ {2}description.*\n/, "") }, 'error: plugin.js:3:1: tool "greet", field `description`: it is missing\n     3 | tool({\n  hint: say in a sentence what it does and when to use it: models and people choose by it'],
  ["no handler", { "plugin.js": tool("") }, /^error: plugin\.js:3:1: tool "greet", field `handler`: it is missing\n {5}3 \| tool\(\{\n {2}hint: write `handler\(arguments, context\)/],
  ["a field of another type", { "plugin.js": tool("  readOnly: 'yes',\n  handler: () => 1,") }, /^error: plugin\.js:6:3: tool "greet", field `readOnly`: it is a string and has to be `true` or `false`\n {5}6 \| {3}readOnly: 'yes',/],
  ["a schema of an unknown type", { "plugin.js": tool("  input: { n: { type: 'text' } },\n  handler: () => 1,") }, /^error: plugin\.js:6:3: tool "greet", field `input`: `n` has the type "text", which JSON Schema does not know\n {5}6 \| .*\n {2}hint: the types are string, number/],
  ["a field in another file", { "plugin.js": 'import "./tools/a.js";', "tools/a.js": tool("  handlr: () => 1,") }, /^error: tools\/a\.js:3:1: tool "greet", field `handler`: it is missing[^]*error: tools\/a\.js:6:3: tool "greet", field `handlr`: there is no such field\n.*\n {2}hint: did you mean `handler`\?/],
  ["two tools of a name", { "plugin.js": `${tool("  handler: () => 1,")}\n${tool("  handler: () => 2,").replace(/import.*\n/, "")}` }, /^error: plugin\.js:10:1: tool "greet": it is defined twice: the first one is at plugin\.js:3:1/],
  ["an unknown hook point", { "plugin.js": 'import { hook } from "@tenon/sdk";\nhook("beforeToolCall", () => {});\n' }, 'error: plugin.js:2:1: hook "beforeToolCall": there is no such point: did you mean `before-tool-call`?\n     2 | hook("beforeToolCall", () => {});\n  hint: a point of a host\'s own has a prefix and a colon: `acme:deploy`'],
  ["a module of Node", { "plugin.js": 'import { readFile } from "node:fs/promises";\nreadFile("x");\n' }, /^error: plugin\.js:1:\d+: `node:fs\/promises` does not exist in a component: it is a module of Node\n {5}1 \| import .*\n {2}hint: what the plugin keeps is in `state`/],
  ["a module of Node without its prefix", { "plugin.js": 'import crypto from "crypto";\ncrypto.createHash("md5");\n' }, /^error: plugin\.js:1:20: `crypto` does not exist in a component[^]*hint: use `crypto.getRandomValues`/],
  ["a package that is not installed", { "plugin.js": 'import x from "left-pad/x";\nx();\n' }, /^error: plugin\.js:1:15: there is no package `left-pad\/x`\n.*\n {2}hint: `npm install left-pad` installs it/],
  ["a file that is not there", { "plugin.js": 'import x from "./x";\nx();\n' }, /^error: plugin\.js:1:15: there is no file `.\/x`\n.*\n {2}hint: the path is that of a file as seen from this one, with its extension/],
  ["a name that does not exist", { "plugin.js": `${tool("  handler: () => 1,")}Buffer.from("x");\n` }, /^error: plugin\.js:8:1: `Buffer` does not exist in a component\n {5}8 \| Buffer.*\n {2}hint: use `Uint8Array` and `TextEncoder`/],
  ["a function of the SDK that was not imported", { "plugin.js": 'import { hook } from "@tenon/sdk";\ntool({ name: "x" });\nhook;\n' }, /^error: plugin\.js:2:1: `tool` does not exist in a component\n.*\n {2}hint: write `import \{ tool \} from "@tenon\/sdk";`/],
  ["an exception while it is loaded", { "plugin.ts": `${tool("  handler: () => 1,")}const x: any = undefined;\nx.y();\n`, "plugin.js": undefined }, /^error: plugin\.ts:9:3: TypeError: Cannot read properties of undefined \(reading 'y'\)\n {5}9 \| x\.y\(\);\n {2}hint: what is at the top of the file runs when the plugin is built/],
  ["a call of the host while it is loaded", { "plugin.js": `${tool("  handler: () => 1,")}import { config } from "@tenon/sdk";\nconfig.get("x");\n` }, /^error: plugin\.js:9:8: Error: the host is not there while the plugin is built: call this in a handler/],
  ["an export that the SDK does not have", { "plugin.js": 'import { tol } from "@tenon/sdk";\ntol({});\n' }, /^error: plugin\.js:1:10: there is no `tol` in "@tenon\/sdk"\n.*\n {2}hint: did you mean `tool`\?/],
  ["the testing host in a plugin", { "plugin.js": 'import { Host } from "@tenon/sdk/testing";\nnew Host();\n' }, /^error: plugin\.js:1:22: `@tenon\/sdk\/testing` is for tests/],
];

for (const [what, files, expected] of mistakes) {
  test(`a mistake: ${what}`, async (t) => {
    const at = plugin(t, { "plugin.js": "", ...files });
    await assert.rejects(async () => describe(read(at)), (error) => {
      assert.equal(error.name, "BuildError", error.stack);
      const said = error.problems.map(toText).join("\n");
      if (typeof expected === "string") assert.equal(said, expected);
      else assert.match(said, expected);
      return true;
    });
  });
}

test("all problems are told at once", async (t) => {
  const at = plugin(t, { "plugin.js": `${tool("")}\n${tool("  handler: 3,").replace(/import.*\n/, "")}` });
  await assert.rejects(async () => describe(read(at)), (error) => error.problems.length === 2);
});

test("a plugin that never ends while it is loaded is given up", { timeout: 60_000 }, async (t) => {
  const at = plugin(t, { "plugin.js": `${tool("  handler: () => 1,")}for (;;);\n` });
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
