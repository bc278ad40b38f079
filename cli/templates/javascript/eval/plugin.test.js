import assert from "node:assert/strict";
import test from "node:test";
import { Host } from "@tenon/sdk/testing";

import { concise } from "./plugin.{{extension}}";

test("what is short passes", async () => {
  assert.equal((await new Host().evaluate(concise, { output: "yes" })).verdict, "pass");
});

test("what is long fails by degrees", async () => {
  const { score, findings } = await new Host().evaluate(concise, { output: "one two three four" }, { most: 3 });
  assert.equal(score, 0.75);
  assert.equal(findings[0].reason, "it has 4 words, and 3 are the most");
});
