/**
 * Copies the contract into this package, in the edition that its toolchain takes: what plugins export is `async`, what
 * they import is not. The test `contract.test.js` fails where the copy is not the contract of the checkout.
 */

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("..", import.meta.url));
const checkout = path.join(here, "../../wit");

/** The interfaces with async functions that plugins import. */
const IMPORTED = ["host-tools.wit", "inference.wit", "memory.wit", "messaging.wit", "user.wit"];

/** The files of the copy, by their paths. */
export function files() {
  const contract = readdirSync(path.join(checkout, "plugin")).map((name) => {
    const text = readFileSync(path.join(checkout, "plugin", name), "utf8");
    return [`tenon-plugin/${name}`, IMPORTED.includes(name) ? text.replaceAll("async func(", "func(") : text];
  });
  return Object.fromEntries([...contract, ["keyvalue/keyvalue.wit", readFileSync(path.join(checkout, "keyvalue/keyvalue.wit"), "utf8")]]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(files())) {
    const file = path.join(here, "wit", name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
