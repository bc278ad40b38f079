import assert from "node:assert/strict";
import test from "node:test";

import { concise } from "./logic.js";

test("what is short passes", () => {
  assert.equal(concise("yes").score, 1);
});

test("what is long fails by degrees", () => {
  const { score, reason } = concise("one two three four", { most: 3 });
  assert.equal(score, 0.75);
  assert.equal(reason, "it has 4 words, and 3 are the most");
});
