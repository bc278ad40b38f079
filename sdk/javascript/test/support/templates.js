/** The projects that `tenon new` makes, and other plugins, in temporary folders. */

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const SDK = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const TEMPLATES = path.join(SDK, "../../cli/templates");
const SHARED = path.join(TEMPLATES, "shared");

/** The worlds that have a template. */
export const WORLDS = readdirSync(path.join(TEMPLATES, "javascript"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** A temporary folder, which is removed when the test ends. */
export function folder(t) {
  const made = mkdtempSync(path.join(tmpdir(), "tenon-js-test-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Writes files into a folder with a manifest, and links the packages that tests use. */
export function plugin(t, files, { id = "sample", capabilities = {}, runtime = "" } = {}) {
  const at = folder(t);
  const requested = Object.entries(capabilities).map(([name, values]) => `${name} = ${JSON.stringify(values)}\n`);
  const manifest = `[plugin]\nid = "${id}"\nversion = "1.2.3"\ndescription = "A sample"\nplugin_api_version = "0.2"\n\n[runtime]\nkind = "wasm"\npath = "${id}.wasm"\n${runtime}\n[capabilities]\n${requested.join("")}`;
  const all = { "plugin.toml": manifest, "tenon.toml": '[plugins]\nfolders = ["."]\n', "package.json": '{ "type": "module" }', ...files };
  for (const [name, text] of Object.entries(all)) {
    if (text === undefined) continue;
    mkdirSync(path.dirname(path.join(at, name)), { recursive: true });
    writeFileSync(path.join(at, name), text);
  }
  link(at);
  return at;
}

/** The packages of this package's tests, and this package itself. */
export function link(at) {
  const modules = path.join(at, "node_modules");
  mkdirSync(path.join(modules, "@tenon"), { recursive: true });
  symlinkSync(SDK, path.join(modules, "@tenon/sdk"));
  for (const name of ["ms", "title-case", "zod", "typescript", "@types/node", "undici-types"]) {
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true });
    symlinkSync(path.join(SDK, "node_modules", name), path.join(modules, name));
  }
}

/** Makes the project of a template, as `tenon new` does. */
export function project(t, world, { language = "javascript", id = "hello" } = {}) {
  const extension = language === "typescript" ? "ts" : "js";
  const read = (name) => readFileSync(path.join(TEMPLATES, name), "utf8");
  const fill = (text) => {
    const blanks = { name: id, description: "Does something", sdk: "0.1.0", kind: "wasm", file: `${id}.wasm`, extension, commands: "" };
    return Object.entries(blanks).reduce((filled, [blank, value]) => filled.replaceAll(`{{${blank}}}`, value), text);
  };
  const files = {
    "plugin.toml": readFileSync(path.join(SHARED, "plugin.toml"), "utf8"),
    "tenon.toml": readFileSync(path.join(SHARED, "tenon.toml"), "utf8"),
    "package.json": read(`${language}/package.json`),
    [`plugin.${extension}`]: read(`javascript/${world}/plugin.js`),
    [`plugin.test.${extension}`]: read(`javascript/${world}/plugin.test.js`),
    ...(language === "typescript" && { "tsconfig.json": read("typescript/tsconfig.json") }),
  };
  return plugin(t, Object.fromEntries(Object.entries(files).map(([name, text]) => [name, fill(text)])));
}
