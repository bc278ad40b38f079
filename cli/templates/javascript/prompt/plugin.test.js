import assert from "node:assert/strict";
import test from "node:test";
import { Host } from "@tenon/sdk/testing";

import { explain } from "./plugin.{{extension}}";

test("the audience is named", () => {
  assert.equal(explain({ topic: "tides", audience: "a child" }), "Explain tides to a child.");
});

test("an audience is suggested", async () => {
  assert.deepEqual(await new Host().completeArgument(explain, "audience", "an"), ["an expert"]);
});
