import assert from "node:assert/strict";
import test from "node:test";
import { Host } from "@tenon/sdk/testing";

import { planet } from "./plugin.{{extension}}";

test("a planet is found by its number", async () => {
  const [part] = await new Host().readResource(planet, "planets://3");
  assert.equal(part.text, "Earth");
});

test("a number without a planet is not found", async () => {
  await assert.rejects(new Host().readResource(planet, "planets://9"), /there is no planet 9/);
});
