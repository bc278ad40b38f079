import assert from "node:assert/strict";
import test from "node:test";

import { greet } from "./logic.js";

test("somebody is greeted", () => {
  assert.equal(greet({ name: " Ada " }), "Hello, Ada!");
});

test("nobody is not greeted", () => {
  assert.throws(() => greet({ name: "" }), /say whom to greet/);
});
