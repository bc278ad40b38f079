import assert from "node:assert/strict";
import test from "node:test";

import { sign } from "./logic.js";

test("a message is signed", () => {
  const signed = sign({ message: "Hi", channel: "x" }, "Yours, Ada");
  assert.deepEqual(signed, { message: "Hi\nYours, Ada", channel: "x" });
});

test("what is no message is left alone", () => {
  assert.equal(sign({}, "Yours, Ada"), null);
});
