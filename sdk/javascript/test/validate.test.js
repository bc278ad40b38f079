import assert from "node:assert/strict";
import test from "node:test";

import { objectSchema } from "../src/schema.js";
import { problems, withDefaults } from "../src/validate.js";

const name = { type: "string", description: "Whom to greet." };
const unit = { type: "string", enum: ["celsius", "fahrenheit"] };

const check = (input, value) => problems(value, objectSchema(input).schema);

const cases = [
  ["what fits", { name }, { name: "Ada" }, []],
  ["a missing argument", { name }, {}, ["`name` (string) is missing: Whom to greet."]],
  ["a missing choice", { unit }, {}, ['`unit` is missing: it has to be one of "celsius", "fahrenheit"']],
  ["another type", { name }, { name: 3 }, ["`name` is 3 and has to be a string"]],
  ["a name that is nearly one", { name }, { nmae: "x", name: "y" }, ["there is no `nmae`: did you mean `name`?"]],
  ["a choice that is nearly one", { unit }, { unit: "celcius" }, ['`unit` is "celcius" and has to be one of "celsius", "fahrenheit"; did you mean `celsius`?']],
  ["an item of an array", { names: { type: "array", items: name } }, { names: ["a", null] }, ["`names[1]` is null and has to be a string"]],
  ["a member of an item", { all: { type: "array", items: { type: "object", properties: { name } } } }, { all: [{}] }, ["`all[0].name` (string) is missing: Whom to greet."]],
  ["an optional argument", { name: { ...name, optional: true } }, {}, []],
  ["an argument with a default", { name: { ...name, default: "x" } }, {}, []],
  ["a number out of range", { n: { type: "integer", minimum: 1, maximum: 9 } }, { n: 10 }, ["`n` is 10 and has to be at most 9"]],
  ["no whole number", { n: { type: "integer" } }, { n: 1.5 }, ["`n` is 1.5 and has to be an integer"]],
  ["a text that is too short", { name: { type: "string", minLength: 2 } }, { name: "é" }, ["`name` has 1 characters and needs at least 2"]],
  ["a pattern", { name: { type: "string", pattern: "^[a-z]+$" } }, { name: "A1" }, ['`name` is "A1" and has to match `^[a-z]+$`']],
  ["one of several", { v: { anyOf: [{ type: "string" }, { type: "null" }] } }, { v: 3 }, ["`v` is none of what it may be: `v` is 3 and has to be a string; or `v` is 3 and has to be a null"]],
  ["a reference", { type: "object", properties: { v: { $ref: "#/$defs/t" } }, $defs: { t: { type: "string" } } }, { v: 1 }, ["`v` is 1 and has to be a string"]],
  ["a whole schema that says what it requires", { type: "object", properties: { a: name, b: name }, required: ["a"] }, { a: "x" }, []],
];

for (const [what, input, value, expected] of cases) {
  test(`arguments: ${what}`, () => assert.deepEqual(check(input, value), expected));
}

test("defaults are filled in, and not shared", () => {
  const { schema } = objectSchema({ tags: { type: "array", default: [] } });
  const one = withDefaults({}, schema);
  one.tags.push("x");
  assert.deepEqual(withDefaults({}, schema), { tags: [] });
});

test("no other arguments are allowed, at any depth", () => {
  const { schema } = objectSchema({ a: { type: "object", properties: { b: name } } });
  assert.deepEqual(schema, {
    type: "object",
    additionalProperties: false,
    required: ["a"],
    properties: { a: { type: "object", properties: { b: name }, required: ["b"], additionalProperties: false } },
  });
});
