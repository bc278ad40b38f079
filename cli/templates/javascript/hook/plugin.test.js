import assert from "node:assert/strict";
import test from "node:test";
import { Host } from "@tenon/sdk/testing";

import { sign } from "./plugin.{{extension}}";

test("a message is signed", async () => {
  const host = new Host({ settings: { signature: "Yours, Ada" } });
  const { context } = await host.handle(sign, { message: "Hi", channel: "x" });
  assert.deepEqual(context, { message: "Hi\nYours, Ada", channel: "x" });
});

test("what is no message is left alone", async () => {
  assert.equal((await new Host().handle(sign, {})).outcome, "continue");
});
