/**
 * What authors see of their mistakes: the whole text, which names the file, the line, the cause and the remedy.
 *
 * The texts are in `mistakes.txt`. With `TENON_BLESS=1` the tests write that file; they compare with it otherwise.
 */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { after } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { describe } from "../build/describe.js";
import { toText } from "../build/problem.js";
import { read } from "../build/project.js";
import { forget } from "../src/registry.js";
import { Host } from "../testing/index.js";
import { plugin } from "./support/templates.js";

const SNAPSHOT = fileURLToPath(new URL("./mistakes.txt", import.meta.url));
const BLESS = process.env.TENON_BLESS === "1";

/** A plugin with the tool `greet`, which has these lines besides its name and description. */
const tool = (lines, after = "") => `import { tool } from "@tenon/sdk";

export const greet = tool({
  name: "greet",
  description: "Greets somebody.",
${lines}
});
${after}`;

/** The same with a handler. */
const sound = (lines = "", after = "") => tool(`${lines ? `  ${lines}\n` : ""}  handler: () => "Hello",`, after);

const input = (schema) => sound(`input: ${schema},`);

/** A plugin with this after the import of everything that it may need. */
const plain = (text) => `import { evaluation, hook, prompt, provider, resource, tool } from "@tenon/sdk";\n\n${text}\n`;

const typescript = (text) => ({ "plugin.ts": text });

/** Mistakes that the build finds: the file `plugin.js`, or all files. */
const built = {
  // The folder.
  "no plugin file": {},
  "no manifest": { "plugin.toml": undefined, "plugin.js": sound() },
  "a manifest that is no TOML": { "plugin.toml": "[plugin\n", "plugin.js": sound() },
  "a package.json that is no JSON": { "package.json": '{\n  "type": "module",\n}\n', "plugin.js": sound() },
  "a `main` that is not there": { "package.json": '{\n  "type": "module",\n  "main": "dist/index.js"\n}\n', "plugin.js": sound() },
  "a `main` that is nearly there": { "package.json": '{\n  "type": "module",\n  "main": "plugn.js"\n}\n', "plugin.js": sound() },
  "a `main` that is no path": { "package.json": '{\n  "type": "module",\n  "main": ["plugin.js"]\n}\n', "plugin.js": sound() },
  "an empty plugin": "export {};",
  "a definition as the default export": "export default {\n  name: \"greet\",\n  handler: () => \"Hello\",\n};\n",
  "a definition in `module.exports`": "module.exports = {\n  name: \"greet\",\n  handler: () => \"Hello\",\n};\n",
  "`require` of the SDK": 'const { tool } = require("@tenon/sdk");\n\nmodule.exports = tool({ name: "greet" });\n',

  // Syntax.
  "a syntax error": 'import { tool } from "@tenon/sdk";\ntool({ name: "greet" ;\n',
  "a string that does not end": 'import { tool } from "@tenon/sdk";\ntool({ name: "greet });\n',
  "`await` in a handler that is not async": tool('  handler() {\n    const answer = await fetch("https://example.com");\n    return answer.text();\n  },'),
  "types in JavaScript": tool("  handler: ({ name }: { name: string }) => name,"),
  "JSX": tool("  handler: () => <b>Hello</b>,"),
  "a syntax error in TypeScript": typescript("const x: = 3;\n"),
  "a member of an enum that is misspelled": typescript(`import { tool } from "@tenon/sdk";\n\nenum Names { Greet = "greet" }\ntool({ name: Names.Grete, description: "Greets.", handler: () => 1 });\n`),
  "a decorator that is not defined": typescript(`${sound()}\n@logged\nclass Greeter {}\nnew Greeter();\n`),
  "a decorator of TypeScript on a function": typescript(`${sound()}\n@logged\nfunction greeting() {}\n`),
  "a namespace of TypeScript that is never filled": typescript(`declare namespace Settings { const greeting: string; }\n${sound("", "console.log(Settings.greeting);\n")}`),
  "`const enum` that is only declared": typescript(`declare enum Unit { Celsius }\n${sound("", "console.log(Unit.Celsius);\n")}`),

  // Imports.
  "a module of Node: `node:fs/promises`": `import { readFile } from "node:fs/promises";\n${sound("", 'readFile("x");\n')}`,
  "a module of Node: `child_process`": `import { execSync } from "child_process";\n${sound("", 'execSync("ls");\n')}`,
  "a module of Node: `net`": `import net from "net";\n${sound("", 'net.connect(80);\n')}`,
  "a module of Node: `crypto`": `import { createHash } from "crypto";\n${sound("", 'createHash("md5");\n')}`,
  "a module of Node: `dns`": `import dns from "node:dns";\n${sound("", "dns.lookup;\n")}`,
  "`require` of a module of Node": sound("", 'const fs = require("fs");\nfs.readFileSync("x");\n'),
  "a package that is not installed": 'import pad from "left-pad/x";\npad();\n',
  "a package of a scope that is not installed": 'import { z } from "@acme/schemas";\nz();\n',
  "a file that is not there": 'import { greeting } from "./greeting";\ngreeting();\n',
  "a file of TypeScript under the name of its JavaScript": { "plugin.js": 'import { greeting } from "./greetings.js";\ngreeting();\n', "greeting.js": "export const greeting = () => 1;\n" },
  "an export that a file does not have": { "plugin.js": 'import { greting } from "./greeting.js";\ngreting();\n', "greeting.js": "export const greeting = () => 1;\n" },
  "an export that the SDK does not have": 'import { tol } from "@tenon/sdk";\ntol({});\n',
  "a default import of the SDK": 'import tenon from "@tenon/sdk";\ntenon.tool({});\n',
  "the testing host in a plugin": `import { Host } from "@tenon/sdk/testing";\n${sound("", "new Host();\n")}`,
  "the builder in a plugin": `import { build } from "@tenon/sdk/build";\n${sound("", "build();\n")}`,
  "a native addon": { "plugin.js": `import { hash } from "./hash.node";\n${sound("", "hash();\n")}`, "hash.node": "\0" },
  "a package with a native addon": {
    "plugin.js": `import { hash } from "fast-hash";\n${sound("", "hash();\n")}`,
    "node_modules/fast-hash/package.json": '{ "main": "index.js" }',
    "node_modules/fast-hash/index.js": 'module.exports = require("./build/Release/hash.node");\n',
    "node_modules/fast-hash/build/Release/hash.node": "\0",
  },
  "JSON that is none": { "plugin.js": `import towns from "./towns.json";\n${sound("", "console.log(towns);\n")}`, "towns.json": '{\n  "graz": 1,\n  linz: 2\n}\n' },
  "a name that JSON does not have": { "plugin.js": `import { vienna } from "./towns.json";\n${sound("", "console.log(vienna);\n")}`, "towns.json": '{ "graz": 1 }\n' },
  "a file of a kind that cannot be imported": { "plugin.js": `import towns from "./towns.csv";\n${sound("", "console.log(towns);\n")}`, "towns.csv": "graz,1\n" },
  "the SDK of MCP": 'import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";\n\nconst server = new McpServer({ name: "greeter", version: "1.0.0" });\nserver.tool("greet", {}, async () => ({ content: [] }));\n',

  // What runs when the file is loaded.
  "`new McpServer` without an import": 'const server = new McpServer({ name: "greeter" });\nserver.tool("greet", {}, async () => ({ content: [] }));\n',
  "`server.tool`": plain('const server = {};\nserver.tool("greet", {}, async () => ({ content: [] }));'),
  "the arguments of `server.tool`": plain('tool("greet", "Greets somebody.", {}, async () => "Hello");'),
  "the name first": plain('tool("greet", { description: "Greets somebody.", handler: () => "Hello" });'),
  "`Buffer`": sound("", 'const bytes = Buffer.from("x");\n'),
  "`process.env`": sound("", "const key = process.env.API_KEY;\n"),
  "`process.argv`": sound("", "const [, , place] = process.argv;\n"),
  "`require` that is computed": sound("", 'const name = "./greeting.js";\nconst greeting = require(name);\n'),
  "`__dirname`": sound("", 'const at = __dirname + "/towns.json";\n'),
  "`import.meta.url` as the place of a file": sound("", 'const at = new URL("towns.json", import.meta.url);\nconst text = Deno.readTextFileSync(at);\n'),
  "`localStorage`": sound("", 'localStorage.setItem("a", "b");\n'),
  "`XMLHttpRequest`": sound("", "const request = new XMLHttpRequest();\n"),
  "`axios` that is not installed": `import axios from "axios";\n${sound("", 'axios.get("https://example.com");\n')}`,
  "`Intl`": sound("", 'const format = new Intl.NumberFormat("de");\n'),
  "`WebSocket`": sound("", 'const socket = new WebSocket("wss://example.com");\n'),
  "`setInterval` at the top of the file": sound("", "setInterval(() => {}, 1000);\n"),
  "`setTimeout` at the top of the file": sound("", "await new Promise((resolve) => setTimeout(resolve, 10));\n"),
  "`fetch` at the top of the file": sound("", 'const answer = await fetch("https://example.com");\n'),
  "`crypto.randomUUID` at the top of the file": sound("", "const id = crypto.randomUUID();\n"),
  "`await` at the top of the file that never ends": sound("", "await new Promise(() => {});\n"),
  "a call of the host at the top of the file": sound("", 'import { config } from "@tenon/sdk";\nconst place = config.get("place");\n'),
  "a secret at the top of the file": sound("", 'import { secrets } from "@tenon/sdk";\nconst key = secrets.get("api-key");\n'),
  "a function of the SDK that was not imported": 'import { hook } from "@tenon/sdk";\ntool({ name: "greet" });\nhook;\n',
  "a class of the SDK that was not imported": sound("", "throw new ToolError(\"no\");\n"),
  "an exception at the top of the file": typescript(sound("", "const settings: any = undefined;\nsettings.place();\n")),
  "a string that is thrown at the top of the file": sound("", 'throw "no settings";\n'),
  "a constant that is used before it is defined": 'import { tool } from "@tenon/sdk";\n\ntool({ name, description: "Greets.", handler: () => 1 });\nconst name = "greet";\n',
  "`process.exit`": sound("", "process.exit(1);\n"),

  // Fields.
  "no name": sound().replace(/ {2}name.*\n/, ""),
  "no description": sound().replace(/ {2}description.*\n/, ""),
  "an empty description": sound().replace("Greets somebody.", " "),
  "no handler": tool("  readOnly: true,"),
  "no definition": plain("tool();"),
  "a definition that is a function": plain('tool(function greet() {\n  return "Hello";\n});'),
  "a definition that is a promise": plain("tool((async () => ({}))());"),
  "a handler that is a result": tool('  handler: "Hello",'),
  "a handler that is called": tool("  handler: (() => Promise.resolve(1))(),"),
  "a handler of another name": tool("  run: () => 1,"),
  "a handler that is misspelled": tool("  handlr: () => 1,"),
  "a field of MCP: `inputSchema`": sound('inputSchema: { type: "object" },'),
  "a field of function calling: `parameters`": sound('parameters: { type: "object" },'),
  "a field of MCP: `annotations`": sound("annotations: { readOnlyHint: true },"),
  "a field in another case": sound("readonly: true,"),
  "a misspelled field in another file": { "plugin.js": 'import "./tools/greet.js";\n', "tools/greet.js": sound("desciption: 1,") },
  "a flag that is a string": sound('readOnly: "yes",'),
  "a title that is a number": sound("title: 3,"),
  "capabilities that are no array": sound('capabilities: "greeting",'),
  "a name that is a number": sound().replace('"greet"', "42"),
  "a name with a space": sound().replace('"greet"', '"greet me"'),
  "a name with letters beyond ASCII": sound().replace('"greet"', '"grüßen"'),
  "two tools of a name": { "plugin.js": `${sound()}\n${sound().replace(/import.*\n/, "").replace("greet ", "again ")}` },
  "two tools of a name in two files": { "plugin.js": 'import "./a.js";\nimport "./b.js";\n', "a.js": sound(), "b.js": sound() },

  // Schemas.
  "`required: true` in a property": input('{ name: { type: "string", required: true } }'),
  "`required: false` in a property": input('{ name: { type: "string", required: false } }'),
  "`required` that is no array of names": input('{ type: "object", properties: { name: { type: "string" } }, required: "name" }'),
  "the type `int`": input('{ times: { type: "int" } }'),
  "the type `float`": input('{ times: { type: "float" } }'),
  "the type `text`": input('{ name: { type: "text" } }'),
  "a type that is misspelled": input('{ name: { type: "sting" } }'),
  "the type `date`": input('{ on: { type: "date" } }'),
  "a type that is a class": input("{ name: { type: String } }"),
  "a property that is a class": input("{ name: String }"),
  "a property that is the name of a type": input('{ name: "string" }'),
  "a keyword that is misspelled": input('{ name: { type: "string", descripton: "Whom to greet." } }'),
  "a keyword in the second property": sound('input: {\n    name: { type: "string" },\n    times: { type: "integer", minium: 1 },\n  },'),
  "a requirement of nothing": input('{ type: "object", properties: { name: { type: "string" } }, required: ["nam"] }'),
  "a pattern that is none": input('{ name: { type: "string", pattern: "(" } }'),
  "an `enum` that is a string": input('{ unit: { type: "string", enum: "celsius" } }'),
  "the schema of a string": input('{ type: "string" }'),
  "a schema that is an array": input('[{ name: "place", type: "string" }]'),
  "a schema that is JSON": input(`'{ "type": "object" }'`),
  "a default of another type": input('{ times: { type: "integer", default: "3" } }'),
  "properties of zod": `import { z } from "zod";\n${input("{ name: z.string() }")}`,
  "a string of zod": `import { z } from "zod";\n${input("z.string()")}`,
  "a schema of zod that JSON Schema cannot say": `import { z } from "zod";\n${input("z.object({ on: z.date() })")}`,

  // The other kinds.
  "a hook point in the style of JavaScript": plain('hook("beforeToolCall", () => {});'),
  "a hook point that does not exist": plain('hook("on-start", () => {});'),
  "a hook without a point": plain("hook(() => {});"),
  "a hook without a handler": plain('hook("before-plan");'),
  "a hook that is written as a tool": plain('hook({ point: "before-plan", handler() {} });'),
  "an option of a hook that is misspelled": plain('hook("before-plan", { prio: 1 }, () => {});'),
  "a priority that is a word": plain('hook("before-plan", { priority: "high" }, () => {});'),
  "hooks of a point that audit and do not": plain('hook("before-plan", () => {});\nhook("before-plan", { audit: true }, () => {});'),
  "a resource without a scheme": plain('resource("notes", { description: "Notes.", handler: () => "x" });'),
  "a resource that is written as a tool": plain('resource({ uri: "notes://all", description: "Notes.", handler: () => "x" });'),
  "a template with one brace": plain('resource("notes://{name", { description: "Notes.", handler: () => "x" });'),
  "a template with a variable twice": plain('resource("notes://{name}/{name}", { description: "Notes.", handler: () => "x" });'),
  "a template in the style of routes": plain('resource("notes://:name", { description: "Notes.", list: () => [], handler: () => "x" });'),
  "a completion of no variable": plain('resource("notes://{name}", {\n  description: "Notes.",\n  complete: { nam: ["a"] },\n  handler: () => "x",\n});'),
  "an argument of a prompt that is a string": plain('prompt({\n  name: "talk",\n  description: "Talks.",\n  arguments: { topic: "What about" },\n  handler: () => "x",\n});'),
  "arguments of a prompt that are an array": plain('prompt({\n  name: "talk",\n  description: "Talks.",\n  arguments: [{ name: "topic", required: true }],\n  handler: () => "x",\n});'),
  "an argument of a prompt with a type": plain('prompt({\n  name: "talk",\n  description: "Talks.",\n  arguments: {\n    topic: { type: "string" },\n  },\n  handler: () => "x",\n});'),
  "an evaluation without a description": plain('evaluation({ name: "short", handler: () => 1 });'),
  "a provider without models": plain('provider({ name: "birds", description: "Birds.", complete: () => "x" });'),
  "a provider that answers nothing": plain('provider({ name: "birds", description: "Birds.", models: ["parrot"] });'),
  "models that are a string": plain('provider({\n  name: "birds",\n  description: "Birds.",\n  models: "parrot",\n  complete: () => "x",\n});'),
};

const asks = (host, { greet }) => host.callTool(greet, { name: "Ada" });
const returns = (value, before = "") => `${before}import { tool } from "@tenon/sdk";

export const greet = tool({
  name: "greet",
  description: "Greets somebody.",
  input: { name: { type: "string", description: "Whom to greet." } },
  async handler({ name }) {
    return ${value};
  },
});
`;

const form = `import { tool } from "@tenon/sdk";

export const forecast = tool({
  name: "forecast",
  description: "Says how the weather will be.",
  input: {
    place: { type: "object", properties: { town: { type: "string" } } },
    unit: { type: "string", enum: ["celsius", "fahrenheit"] },
    days: { type: "integer", minimum: 1, maximum: 7, default: 1 },
  },
  output: { degrees: { type: "number" } },
  handler: () => ({ degrees: "warm" }),
});
`;
const foretell = (args) => [form, (host, { forecast }) => host.callTool(forecast, args)];
const fits = { place: { town: "Graz" }, unit: "celsius" };

/** A plugin that uses the host in its handler. */
const uses = (expression) => returns(expression, 'import { config, inference, memory, messaging, secrets, state, tools, user } from "@tenon/sdk";\n');

const hooked = (body, point = "before-tool-call") => [
  `import { hook, veto } from "@tenon/sdk";\n\nexport const guard = hook("${point}", (context) => {\n  ${body}\n});\n`,
  (host, { guard }) => host.handle(guard, { tool: "x" }),
];
const prompted = (value, args) => [
  `import { prompt } from "@tenon/sdk";\n\nexport const talk = prompt({\n  name: "talk",\n  description: "Talks.",\n  arguments: { topic: { description: "What to talk about." } },\n  handler: () => (${value}),\n});\n`,
  (host, { talk }) => host.getPrompt(talk, args ?? { topic: "tides" }),
];
const judged = (value) => [
  `import { evaluation } from "@tenon/sdk";\n\nexport const short = evaluation({\n  name: "short",\n  description: "Likes short texts.",\n  options: { most: { type: "integer", optional: true } },\n  handler: () => (${value}),\n});\n`,
  (host, { short }) => host.evaluate(short, { output: "x" }),
];
const contained = (value, uri = "notes://a") => [
  `import { resource } from "@tenon/sdk";\n\nexport const note = resource("notes://{name}", {\n  description: "A note.",\n  list: () => [{ variables: { nam: "a" } }],\n  handler: ({ name }) => (${value}),\n});\n`,
  (host, { note }) => host.readResource(note, uri),
];
const answered = (value, models = '["parrot"]') => [
  `import { provider } from "@tenon/sdk";\n\nexport const birds = provider({\n  name: "birds",\n  description: "Birds.",\n  models: ${models},\n  complete: () => (${value}),\n});\n`,
  (host, { birds }) => host.complete(birds, { model: "parrot", prompt: "Hi" }),
];

/** Mistakes that show when the plugin is called: its file, what a test does with it, and what the host grants. */
const called = {
  // Definitions, under a test and not the build.
  "a definition in a test": [tool("  handlr: () => 1,"), asks],

  // Results of tools.
  "a result: a function": [returns("() => name"), asks],
  "a result: a promise within": [returns("{ name, at: Promise.resolve(1) }"), asks],
  "a result: a response": [returns('new Response("x")'), asks],
  "a result: BigInt within": [returns("{ id: 12n }"), asks],
  "a result: a symbol": [returns("{ id: Symbol.iterator }"), asks],
  "a result: NaN": [returns("{ times: { a: [1, Number(name)] } }"), asks],
  "a result: a number that is none": [returns("Number(name)"), asks],
  "a result: a map": [returns('{ all: new Map([["a", 1]]) }'), asks],
  "a result: a set": [returns("new Set([name])"), asks],
  "a result: a date": [returns("{ on: new Date(Number.NaN) }"), asks],
  "a result: an instance": [returns("new (class Greeting { #name = name; })()"), asks],
  "a result: a regular expression": [returns("{ pattern: /a/ }"), asks],
  "a result: bytes": [returns("new Uint8Array(2)"), asks],
  "a result: an error": [returns('new Error("no such town")'), asks],
  "a result: a circle": [returns("(() => { const a = { name }; a.self = a; return a; })()"), asks],
  "a result: content and objects": [returns('[{ type: "text", text: "x" }, text("y"), { name }]', 'import { text } from "@tenon/sdk";\n'), asks],
  "a result: an image without a type": [returns("image(new Uint8Array(1))", 'import { image } from "@tenon/sdk";\n'), asks],
  "a result: content of MCP in another type": [returns('{ content: [{ type: "txt", text: "x" }] }'), asks],
  "a result: `undefined` where there is an `output`": [form.replace(/handler:.*/, "handler() {},"), (host, { forecast }) => host.callTool(forecast, fits)],
  "a result that does not fit the `output`": foretell(fits),
  "a result with a member that is misspelled": [form.replace(/handler:.*/, "handler: () => ({ degres: 3 }),"), (host, { forecast }) => host.callTool(forecast, fits)],
  "a result with `isError` of MCP": [returns('toolResult({ content: [3] })', 'import { toolResult } from "@tenon/sdk";\n'), asks],

  // Exceptions.
  "an exception": [returns("name.first.last"), asks],
  "an exception with a cause": [returns('(() => { throw new Error("no forecast", { cause: new RangeError("no such day") }); })()'), asks],
  "a string that is thrown": [returns('(() => { throw "no such town"; })()'), asks],
  "an object that is thrown": [returns('(() => { throw { code: 404 }; })()'), asks],
  "an error code that does not exist": [returns('(() => { throw new TenonError("notfound", "no such town"); })()', 'import { TenonError } from "@tenon/sdk";\n'), asks],
  "the message in the place of the code": [returns('(() => { throw new TenonError("no such town"); })()', 'import { TenonError } from "@tenon/sdk";\n'), asks],
  "`await` that was forgotten": [uses('void messaging.send("Hi") ?? "sent"'), asks, { messaging: ["*"] }],
  "`await` that was forgotten before a value is used": [uses('(tools.call("slug", {})).text.trim()'), asks, { tools: { slug: "x" } }],

  // What `plugin.toml` does not request.
  "`fetch` without a request": [uses('fetch("https://api.example.com/x")'), asks],
  "`secrets` without a request": [uses('secrets.get("api-key")'), asks],
  "another secret than requested": [uses('secrets.get("apikey")'), asks, { secrets: { "api-key": "x" } }],
  "`state` without a request": [uses('state.get("a")'), asks],
  "another scope of `state` than requested": [uses('state.bucket("user").get("a")'), asks, { state: ["project"] }],
  "a scope of `state` that does not exist": [uses('state.bucket("global").get("a")'), asks, { state: ["project"] }],
  "`state` that is set to a function": [uses('state.set("a", () => 1)'), asks, { state: ["project"] }],
  "`state.update` with an async function": [uses('state.update("a", async () => 1)'), asks, { state: ["project"] }],
  "`tools.call` without a request": [uses('tools.call("text_tools__slug", {})'), asks],
  "`inference.complete` without a request": [uses('inference.complete("Hi")'), asks],
  "`user.ask` without a request": [uses('user.ask("Where to?")'), asks],
  "`memory.search` without a request": [uses('memory.search("x")'), asks],
  "`messaging.send` without a request": [uses('messaging.send({ channel: "ops", text: "x" })'), asks],

  // Arguments.
  "an argument that is missing": foretell({ unit: "celsius" }),
  "an argument within another that is missing": foretell({ ...fits, place: {} }),
  "an argument of another type": foretell({ ...fits, days: "three" }),
  "an argument out of its range": foretell({ ...fits, days: 10 }),
  "an argument that is misspelled": foretell({ ...fits, dayz: 1 }),
  "an argument within another that is misspelled": foretell({ ...fits, place: { twon: "Graz" } }),
  "a value of an `enum` that is misspelled": foretell({ ...fits, unit: "celcius" }),
  "arguments that are no object": [form, (host, { forecast }) => host.callTool(forecast, ["Graz"])],

  // The testing host.
  "a name in the place of a definition": [returns("name"), (host) => host.callTool("greet", {})],
  "a definition of another kind": [returns("name"), (host, { greet }) => host.getPrompt(greet)],
  "a grant that the testing host does not know": [returns("name"), () => new Host({ secret: {} })],

  // The other kinds.
  "a hook returns a string": hooked('return "no";'),
  "a hook returns `false`": hooked("return false;"),
  "a hook returns the outcome of the contract": hooked('return { veto: "no" };'),
  "a hook vetoes what has happened": hooked('return veto("no");', "after-tool-call"),
  "a veto without a reason": hooked("return veto();"),
  "a prompt returns nothing": prompted("undefined"),
  "a prompt returns a number": prompted("3"),
  "a prompt has a message of the system": prompted('[{ role: "system", content: "Be brief." }]'),
  "an argument of a prompt that is missing": prompted('"x"', {}),
  "an argument of a prompt that is misspelled": prompted('"x"', { topik: "tides" }),
  "an evaluation returns a score out of range": judged("80"),
  "an evaluation returns a string": judged('"good"'),
  "an evaluation returns nothing": judged("undefined"),
  "an evaluation returns a member that is misspelled": judged("{ scor: 1 }"),
  "an evaluation returns a verdict that does not exist": judged('{ score: 1, verdict: "passed" }'),
  "findings without `finding`": judged('[{ criterion: "length", passed: true }]'),
  "a resource returns nothing": contained("undefined"),
  "a resource returns a number": contained("3"),
  "a URI that no template has": contained('"x"', "note://a"),
  "a list of a template with another variable": [contained('"x"')[0], (host, { note }) => host.listResources(note)],
  "a provider answers with a number": answered("3"),
  "a provider answers in the form of another API": answered('{ parts: [{ type: "output_text", text: "Hi" }] }'),
};

const kept = BLESS ? {} : parse(readFileSync(SNAPSHOT, "utf8"));
const seen = {};

/** The texts of the snapshot by their titles. */
function parse(text) {
  return Object.fromEntries(text.split(/^### /m).slice(1).map((section) => {
    const end = section.indexOf("\n");
    return [section.slice(0, end), section.slice(end + 1).trimEnd()];
  }));
}

function compare(title, folder, said) {
  seen[title] = said.replaceAll(`${folder}/`, "").replaceAll(`${path.basename(folder)}/`, "").trimEnd();
  if (!BLESS) assert.equal(seen[title], kept[title]);
}

/** What the build says. */
async function build(folder) {
  try {
    await describe(read(folder));
  } catch (error) {
    assert.equal(error.name, "BuildError", error.stack);
    return error.problems.map(toText).join("\n");
  }
  return "(nothing)";
}

/** What a test of the plugin says, and what the log has. */
async function call(folder, use, granted) {
  forget();
  const host = new Host(granted);
  let said = "(nothing)";
  try {
    const plugin = await import(pathToFileURL(path.join(folder, "plugin.js")));
    const result = await use(host, plugin);
    said = `(nothing; the result is ${JSON.stringify(result)})`;
  } catch (error) {
    said = `${error.name}${error.code ? ` (${error.code})` : ""}: ${error.message}`;
  }
  // Names of functions are the engine's, and lines of this package are not the author's.
  const logged = host.logged.map(({ level, message }) => `log ${level}: ${message}`).join("\n").replace(/^ {4}at .*?(\S*)$/gm, "    at $1").replace(/\n {4}at (?!.*plugin\.js).*/g, "");
  return logged ? `${said}\n${logged}` : said;
}

test("mistakes that the build finds", { concurrency: 3 }, async (t) => {
  await Promise.all(
    Object.entries(built).map(([title, files]) =>
      t.test(title, async (t) => {
        const folder = plugin(t, typeof files === "string" ? { "plugin.js": files } : files);
        compare(title, folder, await build(folder));
      }),
    ),
  );
});

for (const [title, [source, use, granted]] of Object.entries(called)) {
  test(title, async (t) => {
    const folder = plugin(t, { "plugin.js": source });
    compare(title, folder, await call(folder, use, granted));
  });
}

test("every text of the snapshot is that of a mistake", () => {
  const titles = [...Object.keys(built), ...Object.keys(called)];
  assert.deepEqual(Object.keys(BLESS ? seen : kept).sort(), titles.sort());
});

after(() => {
  if (BLESS) writeFileSync(SNAPSHOT, [...Object.keys(built), ...Object.keys(called)].map((title) => `### ${title}\n${seen[title]}\n`).join("\n"));
});
