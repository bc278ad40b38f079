import assert from "node:assert/strict";
import test from "node:test";

import { repeat } from "./logic.js";

test("a parrot repeats", () => {
  assert.deepEqual(repeat(["Polly wants", " a cracker"]), { text: "Polly wants a cracker", words: 4 });
});

test("silence has no words", () => {
  assert.deepEqual(repeat([]), { text: "", words: 0 });
});
