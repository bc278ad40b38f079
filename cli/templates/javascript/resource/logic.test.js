import assert from "node:assert/strict";
import test from "node:test";

import { planet } from "./logic.js";

test("a planet is found by its number", () => {
  assert.equal(planet(3), "Earth");
});

test("a number without a planet is not found", () => {
  assert.throws(() => planet(9), /there is no planet 9/);
});
