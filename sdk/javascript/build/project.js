/** What is in the folder of a plugin: its manifest, its package and its file. */

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { parse } from "smol-toml";

import { BuildError } from "./problem.js";

/** The files that a plugin may be, the likeliest first. */
const FILES = ["plugin.ts", "plugin.js", "plugin.mts", "plugin.mjs"];

/**
 * Reads a plugin's folder.
 *
 * @returns {{ folder: string, file: string, identity: { name: string, version: string, description: string }, capabilities: Record<string, string[]>, isShared: boolean }}
 */
export function read(folder) {
  const manifest = readManifest(folder);
  const pack = readPackage(folder);
  const about = manifest.plugin ?? {};
  return {
    folder,
    file: find(folder, pack),
    identity: {
      name: about.id ?? pack.name ?? path.basename(folder),
      version: about.version ?? pack.version ?? "0.0.0",
      description: about.description ?? pack.description ?? "",
    },
    capabilities: manifest.capabilities ?? {},
    // Calls of a fresh instance are never cancelled: the host discards it.
    isShared: ["shared", "session"].includes(manifest.runtime?.instance),
  };
}

function readManifest(folder) {
  const file = path.join(folder, "plugin.toml");
  if (!existsSync(file)) throw new BuildError([{ file: "plugin.toml", message: "there is no such file", hint: "`tenon new NAME --lang javascript` makes a plugin with one" }]);
  try {
    return parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new BuildError([{ file: "plugin.toml", line: error.line, column: error.column, message: String(error.message).split("\n")[0] }]);
  }
}

function readPackage(folder) {
  const file = path.join(folder, "package.json");
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new BuildError([{ file: "package.json", message: error.message }]);
  }
}

function find(folder, { main }) {
  const isPlugin = (file) => existsSync(path.join(folder, file));
  const found = main === undefined ? FILES.find(isPlugin) : [main].find(isPlugin);
  if (found) return found;
  const message = main === undefined ? `there is no plugin: none of ${FILES.join(", ")}` : `there is no ${main}, which is \`main\` of package.json`;
  throw new BuildError([{ message, hint: "write the plugin in `plugin.js` or `plugin.ts`, or name its file as `main` in package.json" }]);
}
