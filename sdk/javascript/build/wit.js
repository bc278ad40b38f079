/** The WIT of a component: what it exports, and what it imports. */

import { cp, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

import { SDK } from "./bundle.js";
import { BASE, CONTRACT } from "./capabilities.js";

/** The world of a component. */
export function world({ worlds, exports, imports }) {
  const escaped = (name) => (name === "resource" ? "%resource" : name);
  const lines = [
    ...worlds.map((name) => `    include tenon:plugin/${escaped(name)}@${CONTRACT};`),
    ...exports.map((name) => `    export tenon:plugin/${name}@${CONTRACT};`),
    ...imports.filter((name) => !BASE.includes(name)).map((name) => `    import ${name};`),
  ];
  return `package local:plugin;\n\nworld component {\n${lines.join("\n")}\n}\n`;
}

/** Writes a folder of WIT with the world and what it refers to. */
export async function write(folder, contents) {
  await mkdir(folder, { recursive: true });
  await cp(path.join(SDK, "wit"), path.join(folder, "deps"), { recursive: true });
  await writeFile(path.join(folder, "component.wit"), world(contents));
}
