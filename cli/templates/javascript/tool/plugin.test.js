import assert from "node:assert/strict";
import test from "node:test";
import { Host } from "@tenon/sdk/testing";

import { greet } from "./plugin.{{extension}}";

test("somebody is greeted", () => {
  assert.equal(greet({ name: " Ada " }), "Hello, Ada!");
});

test("nobody is not greeted", async () => {
  const { text, isError } = await new Host().callTool(greet, { name: "" });
  assert.equal(text, "`name` is empty: say whom to greet");
  assert.equal(isError, true);
});
