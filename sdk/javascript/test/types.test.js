/** TypeScript finds in the plugin of `test/types` what it has to, and no more. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";

import { SDK, WORLDS, project } from "./support/templates.js";

const tsc = (...args) => spawnSync(process.execPath, [path.join(SDK, "node_modules/typescript/bin/tsc"), ...args], { encoding: "utf8" });

test("types are inferred, and mistakes are refused", () => {
  const { stdout, status } = tsc("--project", path.join(SDK, "test/types"));
  assert.equal(stdout, "");
  assert.equal(status, 0);
});

for (const world of WORLDS) {
  test(`the template ${world} has no error of types`, (t) => {
    const { stdout, status } = tsc("--project", project(t, world, { language: "typescript" }));
    assert.equal(stdout, "");
    assert.equal(status, 0);
  });
}
