/** The copy of the contract is the contract. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { POINTS } from "../src/points.js";
import { files } from "../scripts/copy-wit.js";
import { SDK } from "./support/templates.js";

const wit = path.join(SDK, "wit");

test("the WIT is that of the checkout; `npm run wit` copies it", () => {
  for (const [name, text] of Object.entries(files())) assert.equal(existsSync(path.join(wit, name)) && readFileSync(path.join(wit, name), "utf8"), text, name);
  const copied = readdirSync(path.join(wit, "tenon-plugin")).map((name) => `tenon-plugin/${name}`);
  assert.deepEqual(copied.filter((name) => !(name in files())), []);
});

test("the points are those of the contract's contexts", () => {
  const text = readFileSync(path.join(SDK, "../../wit/contexts/src/lib.rs"), "utf8");
  const points = [...text.matchAll(/\/\/\/ `([a-z-]+)`: /g)].map(([, point]) => point);
  assert.deepEqual(Object.keys(POINTS).sort(), points.sort());
});
