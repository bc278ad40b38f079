import assert from "node:assert/strict";
import test from "node:test";
import { Host } from "@tenon/sdk/testing";

import { parrot } from "./plugin.{{extension}}";

test("a parrot repeats", async () => {
  const { text, usage } = await new Host().complete(parrot, { model: "parrot", prompt: "Polly wants a cracker" });
  assert.equal(text, "Polly wants a cracker");
  assert.equal(usage.output, 4);
});

test("a request without a user is refused", async () => {
  await assert.rejects(new Host().complete(parrot, { model: "parrot" }), { code: "invalid-input" });
});
