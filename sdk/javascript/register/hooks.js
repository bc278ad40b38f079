/** Module hooks: TypeScript becomes JavaScript when it is imported. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

/** Finds `./x.ts` where TypeScript's way of writing has `./x.js`. */
export async function resolve(specifier, context, next) {
  if (/^\.\.?\/.*\.js$/.test(specifier) && context.parentURL?.endsWith(".ts")) {
    const url = new URL(specifier.replace(/\.js$/, ".ts"), context.parentURL);
    if (existsSync(fileURLToPath(url))) return { url: url.href, format: "module", shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!/\.m?ts$/.test(url) || !url.startsWith("file:")) return next(url, context);
  const file = fileURLToPath(url);
  const { code } = await transform(await readFile(file, "utf8"), { loader: "ts", format: "esm", sourcemap: "inline", sourcefile: file, target: "node20" });
  return { format: "module", source: code, shortCircuit: true };
}
