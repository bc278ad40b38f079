/** Loads the bundle of a plugin, and prints what it defines and what is wrong with it as JSON. */

import { fileURLToPath, pathToFileURL } from "node:url";

import { frames } from "../src/location.js";
import { removeOthers } from "./globals.js";

const { argv, exit, stdout } = process;
const { stringify } = JSON;
const sdk = fileURLToPath(new URL("..", import.meta.url));
const bundle = pathToFileURL(argv[2]).href;

// What fails later, such as a promise that nobody awaits.
process.on("uncaughtException", (error) => print([told(error)]));

removeOthers(globalThis);

let thrown;
try {
  await import(bundle);
} catch (error) {
  thrown = told(error);
}

const { registry = {}, problems = [] } = globalThis.__tenonDescribed ?? {};
const defined = Object.fromEntries(
  Object.entries(registry).map(([kind, entries]) => [
    kind,
    entries.map(({ key, completes = false, subscribes = false, streams = false }) => ({ key, completes, subscribes, streams })),
  ]),
);
print(thrown ? [...problems, thrown] : problems, defined);

function print(problems, defined = {}) {
  stdout.write(stringify({ defined, problems }), () => exit(0));
}

/** What was thrown, and where. */
function told(error) {
  const isError = error instanceof Error;
  // Only the frames of the author's files say where it was; those of this package and of Node do not.
  const places = isError ? frames(error.stack).filter(({ file }) => !/(^|\/)(build\/describe-runner\.js|bundle\.mjs|tenon-builtin:.*)$/.test(file)) : [];
  const own = places.find(({ file }) => !file.includes("/node_modules/") && !file.startsWith(sdk)) ?? places[0];
  return { thrown: { isError, name: isError ? error.name : typeof error, message: isError ? error.message : String(error) }, location: own && `${own.file}:${own.line}:${own.column}` };
}
