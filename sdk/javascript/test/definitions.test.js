/** What authors see of mistakes in definitions. */

import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";

import { evaluation, hook, prompt, provider, resource, tool } from "../src/index.js";
import { forget } from "../src/registry.js";

beforeEach(forget);

const handler = () => "x";
const sound = { name: "greet", description: "Greets.", handler };

const cases = [
  ["no description", () => tool({ ...sound, description: undefined }), /tool "greet", field `description`: it is missing\n {2}hint: say in a sentence/],
  ["an empty description", () => tool({ ...sound, description: " " }), /field `description`: it is empty/],
  ["no handler", () => tool({ ...sound, handler: undefined }), /tool "greet", field `handler`: it is missing\n {2}hint: write `handler/],
  ["a handler that is a result", () => tool({ ...sound, handler: "x" }), /field `handler`: it is a string and has to be a function/],
  ["no name", () => tool({ ...sound, name: undefined }), /a tool, field `name`: it is missing/],
  ["a name with a space", () => tool({ ...sound, name: "greet me" }), /"greet me" is no name: names have 1 to 128/],
  ["a field that is nearly one", () => tool({ ...sound, desciption: "x" }), /field `desciption`: there is no such field\n {2}hint: did you mean `description`\?/],
  ["a flag that is a string", () => tool({ ...sound, readOnly: "yes" }), /field `readOnly`: it is a string and has to be `true` or `false`/],
  ["a definition that is a function", () => tool(handler), /its definition is a function and has to be an object/],
  ["a duplicate name", () => [tool(sound), tool(sound)], /tool "greet": it is defined twice: the first one is at .*definitions\.test\.js:\d+/],
  ["a type that is nearly one", () => tool({ ...sound, input: { n: { type: "sting" } } }), /field `input`: `n` has the type "sting", which JSON Schema does not know\n {2}hint: did you mean "string"\?/],
  ["a type that is a class", () => tool({ ...sound, input: { n: { type: String } } }), /`n` has the type String, which JSON Schema does not know/],
  ["a property that is a type", () => tool({ ...sound, input: { n: "string" } }), /`n` is a string and has to be a JSON Schema, such as/],
  ["a keyword that is nearly one", () => tool({ ...sound, input: { n: { type: "string", descripton: "x" } } }), /`n` has the keyword `descripton`, which JSON Schema does not know\n {2}hint: did you mean `description`\?/],
  ["a requirement of nothing", () => tool({ ...sound, input: { type: "object", properties: {}, required: ["a"] } }), /requires `a`, which is none of its properties/],
  ["a pattern that is none", () => tool({ ...sound, input: { n: { type: "string", pattern: "(" } } }), /`n` has a `pattern` that is no regular expression/],
  ["an input that is an array", () => tool({ ...sound, input: [] }), /field `input`: is an array and has to be an object of properties/],
  ["a hook point that is nearly one", () => hook("before-toolcall", handler), /hook "before-toolcall": there is no such point: did you mean `before-tool-call`\?/],
  ["a hook without a handler", () => hook("before-plan"), /hook "before-plan": its handler is undefined and has to be a function/],
  ["a hook with a strange option", () => hook("before-plan", { prio: 1 }, handler), /field `prio`: there is no such field/],
  ["hooks that audit and do not", () => [hook("before-plan", handler), hook("before-plan", { audit: true }, handler)], /field `audit`: another handler of this point, at .*, does not audit/],
  ["a resource without a scheme", () => resource("notes", { description: "x", handler }), /resource "notes", field `uri`: "notes" is no URI/],
  ["a template that is none", () => resource("notes://{name", { description: "x", handler }), /no URI template: it has a brace|no URI template: it has a `\{`/],
  ["a completion of no variable", () => resource("notes://{name}", { description: "x", handler, complete: { nam: ["a"] } }), /field `complete.nam`: the template has no variable `nam`: did you mean `name`\?/],
  ["an argument of a prompt that is a string", () => prompt({ ...sound, arguments: { topic: "What" } }), /prompt "greet", argument `topic`: its definition is a string/],
  ["an evaluation without a description", () => evaluation({ name: "x", handler }), /evaluation "x", field `description`: it is missing/],
  ["a provider that answers nothing", () => provider({ name: "x", description: "x", models: [] }), /provider "x", field `complete`: it is missing/],
];

for (const [what, define, expected] of cases) {
  test(`a mistake: ${what}`, () => {
    assert.throws(define, (error) => {
      assert.equal(error.name, "DefinitionError");
      assert.match(error.message, expected);
      assert.match(error.message, /definitions\.test\.js:\d+:\d+: /, "it names the author's line");
      return true;
    });
  });
}
