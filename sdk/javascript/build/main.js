#!/usr/bin/env node
/**
 * The command that `tenon build` runs for plugins in JavaScript and TypeScript:
 *
 *     node node_modules/@tenon/sdk/build/main.js --output FILE [--folder DIR] [--json]
 *
 * It writes the component and prints what is in it. What is wrong with the plugin goes to standard error, with the
 * file, the line and what to do, or with `--json` to standard output as `{ "problems": […] }`; the status is 1 then.
 */

import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { build } from "./component.js";
import { BuildError } from "./problem.js";

const { values } = parseArgs({
  options: {
    folder: { type: "string", default: "." },
    output: { type: "string" },
    json: { type: "boolean", default: false },
    readable: { type: "boolean", default: false },
    fast: { type: "boolean", default: false },
  },
});

try {
  if (!values.output) throw new BuildError([{ message: "`--output FILE` is missing" }]);
  const { component, ...about } = await build(values.folder, { minify: !values.readable, optSize: !values.fast });
  await writeFile(values.output, component);
  const said = { ...about, size: component.length };
  process.stdout.write(values.json ? `${JSON.stringify(said)}\n` : `${values.output}: ${component.length} bytes, ${about.worlds.join(", ")}\n`);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  if (values.json) process.stdout.write(`${JSON.stringify({ problems: error.problems })}\n`);
  else process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
