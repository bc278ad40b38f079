/** What is in the folder of a plugin: its manifest, its package and its file. */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { parse } from "smol-toml";

import { nearest } from "../src/nearest.js";
import { BuildError, JSON_SYNTAX, Sources } from "./problem.js";

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
    isShared: ["shared", "stateless", "session"].includes(manifest.runtime?.instance),
  };
}

function readManifest(folder) {
  const file = path.join(folder, "plugin.toml");
  if (!existsSync(file)) throw new BuildError([{ file: "plugin.toml", message: "there is no such file", hint: "`tenon new NAME --lang javascript` makes a plugin with one" }]);
  try {
    return parse(readFileSync(file, "utf8"));
  } catch (error) {
    const problem = { message: String(error.message).split("\n")[0], hint: "TOML has tables in brackets, `[plugin]`, and strings in quotes, `id = \"greeter\"`" };
    throw new BuildError([new Sources(folder).at({ file: "plugin.toml", line: error.line, column: error.column }, problem)]);
  }
}

function readPackage(folder) {
  const file = path.join(folder, "package.json");
  if (!existsSync(file)) return {};
  const text = readFileSync(file, "utf8");
  try {
    return JSON.parse(text);
  } catch (error) {
    const [, cause, position] = error.message.match(/^(.*?)(?: in JSON)? at position (\d+)/) ?? [, error.message.replace(/, ".*/s, ""), text.trimEnd().length];
    const before = text.slice(0, Number(position)).split("\n");
    const place = { file: "package.json", line: before.length, column: before.at(-1).length + 1 };
    throw new BuildError([new Sources(folder).at(place, { message: `it is no JSON: ${cause}`, hint: JSON_SYNTAX })]);
  }
}

function find(folder, { main }) {
  if (main !== undefined && typeof main !== "string") throw ofMain(folder, "`main` has to be a string", 'write `"main": "plugin.js"`');
  const isPlugin = (file) => existsSync(path.join(folder, file));
  const found = main === undefined ? FILES.find(isPlugin) : [main].find(isPlugin);
  if (found) return found;
  const hint = "write the plugin in `plugin.js` or `plugin.ts`, or name its file as `main` in package.json";
  if (main === undefined) throw new BuildError([{ message: `there is no plugin: none of ${FILES.join(", ")}`, hint }]);
  const near = FILES.find(isPlugin) ?? nearest(main, readdirSync(folder));
  throw ofMain(folder, `there is no ${main}, which is \`main\``, near ? `write \`"main": ${JSON.stringify(near)}\`` : hint);
}

/** What is wrong with `main` of package.json. */
function ofMain(folder, message, hint) {
  const sources = new Sources(folder);
  const place = sources.field({ file: "package.json", line: 1, column: 1 }, "main");
  return new BuildError([sources.at(place, { message, hint })]);
}
