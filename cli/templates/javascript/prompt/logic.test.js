import assert from "node:assert/strict";
import test from "node:test";

import { explain } from "./logic.js";

test("the audience is named", () => {
  assert.equal(explain({ topic: "tides", audience: "a child" }), "Explain tides to a child.");
});

test("the audience may be left out", () => {
  assert.equal(explain({ topic: "tides" }), "Explain tides to a beginner.");
});
