/** What a plugin defines: the plugin is loaded under Node, in a process of its own, without anything that only Node has. */

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { bundle } from "./bundle.js";
import { remedy } from "./globals.js";
import { BuildError, Sources } from "./problem.js";

const RUNNER = fileURLToPath(new URL("./describe-runner.js", import.meta.url));

/** How long a plugin may take to load, in milliseconds. */
const TIME_LIMIT = 20_000;

const MODULES = {
  "tenon:entry": 'import "tenon:describe";\nimport "tenon:plugin";\n',
  "tenon:describe": `
    import { collectProblems, registry } from "./src/registry.js";
    const problems = [];
    collectProblems(problems);
    globalThis.__tenonDescribed = { registry, problems };`,
};

/**
 * Describes a plugin.
 *
 * @returns {Promise<{ worlds: string[], exports: string[], web: Set<string>, imported: Set<string>, names: object, warnings: object[] }>}
 * @throws {BuildError} With all problems that there are.
 */
export async function describe(project) {
  const sources = new Sources(project.folder);
  const { code, map, web, imported, warnings } = await bundle(project, MODULES, { sources });
  const temporary = await mkdtemp(path.join(tmpdir(), "tenon-js-"));
  try {
    const file = path.join(temporary, "bundle.mjs");
    // The map has paths from the plugin's folder.
    const absolute = { ...map, sources: map.sources.map((source) => pathToFileURL(path.resolve(project.folder, source)).href) };
    await writeFile(`${file}.map`, JSON.stringify(absolute));
    await writeFile(file, `${withoutInterfaces(code)}\n//# sourceMappingURL=bundle.mjs.map\n`);
    const described = await run(file, () => unsettled(project, sources));
    const problems = described.problems.map((each) => toProblem(each, sources, project));
    if (problems.length > 0) throw new BuildError(problems);
    return { ...what(described.defined, project, sources), web, imported, warnings };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Interfaces of the host are not there yet: what is imported from them fails when it is used. */
function withoutInterfaces(code) {
  return code.replace(/^import (\w+|\* as \w+|\{[^}]*\}) from "[a-z-]+:[^"]+";$/gm, (whole, what) => {
    const name = what.replace("* as ", "");
    return name.startsWith("{") ? `const ${name.replace(/ as /g, ": ")} = {};` : `const ${name} = {};`;
  });
}

/** The status of Node where a module waits for what never comes. */
const UNSETTLED = 13;

/** What is wrong with a plugin that waits for ever: the line is that of its first `await` outside of functions. */
function unsettled({ file }, sources) {
  const lines = sources.lines(file);
  const index = lines.findIndex((line) => /^(\S.*)?\bawait\b/.test(line));
  const problem = { message: "an `await` at the top of the file never ends", hint: "what is at the top of the file runs when the plugin is built: wait in a handler, and look for a `new Promise` whose `resolve` is never called" };
  return index < 0 ? { file, ...problem } : sources.at({ file, line: index + 1, column: lines[index].indexOf("await") + 1 }, problem);
}

function run(file, waiting) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--enable-source-maps", "--no-warnings", RUNNER, file], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new BuildError([{ message: `the plugin was not loaded after ${TIME_LIMIT / 1000} s`, hint: "what is at the top of its file runs when it is built: loops that wait belong into handlers" }]));
    }, TIME_LIMIT);
    child.stdout.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (status) => {
      clearTimeout(timer);
      if (status === UNSETTLED) return reject(new BuildError([waiting()]));
      try {
        resolve(JSON.parse(output));
      } catch {
        reject(new BuildError([{ message: `the plugin ended the process that loads it, with the status ${status}`, hint: "what is at the top of its file runs when it is built: look for what uses very much memory there" }]));
      }
    });
  });
}

function toProblem({ what, field, within, problem, hint, location, isMissing, thrown }, sources, { file }) {
  const place = parse(location);
  if (thrown) return ofThrown(thrown, place ?? { file }, sources);
  const message = `${what}${field ? `, field \`${field}\`` : ""}: ${problem}`;
  if (!place) return { message, hint };
  return sources.at(field && !isMissing ? sources.field(place, field, within) : place, { message: relative(message, sources), hint });
}

/** Paths within a message as authors know them. */
const relative = (message, sources) => message.replaceAll(`${sources.folder}${path.sep}`, "");

function ofThrown({ isError, name, message }, place, sources) {
  const at = (problem, hint) => sources.at(place, { message: problem, hint });
  const [, missing] = message.match(/^(\S+) is not defined/) ?? [];
  if (missing) return at(`\`${missing}\` does not exist in a component`, remedy(missing) ?? "define it, or import it");
  const [, builtin, instead] = message.match(/^(.* it is a module of Node); (.*)$/) ?? [];
  if (builtin) return at(builtin, instead);
  const [, required] = message.match(/^Dynamic require of "(.*)" is not supported$/) ?? [];
  if (required) return at(`\`require\` of ${JSON.stringify(required)} is not possible: the build does not know what to take in`, `write \`import … from ${JSON.stringify(required)};\``);
  if (!isError) return at(`${JSON.stringify(message)} was thrown, which is no Error`, "throw `new Error(…)`, whose line is known");
  return at(`${name}: ${message}`, "what is at the top of the file runs when the plugin is built: what a call needs belongs into its handler");
}

function parse(location) {
  const [, file, line, column] = location?.match(/^(.*):(\d+):(\d+)$/) ?? [];
  return file && { file, line: Number(line), column: Number(column) };
}

/** What is wrong with a plugin without definitions. Other systems take what a file exports for one. */
function nothing(file, sources) {
  const message = "the plugin defines nothing";
  const lines = sources.lines(file);
  const index = lines.findIndex((line) => /^(export default|module\.exports\s*=|exports\.\w+\s*=)/.test(line));
  if (index >= 0) return sources.at({ file, line: index + 1, column: 1 }, { message: `${message}: what it exports does not count`, hint: 'write `import { tool } from "@tenon/sdk";` and `export const greet = tool({ … });`' });
  return { file, message, hint: 'call `tool`, `hook`, `resource`, `prompt`, `evaluation` or `provider` of "@tenon/sdk" at the top of its file, or import the files that do' };
}

/** What a component of these definitions exports: worlds of the contract, and single interfaces. */
function what(defined, { isShared, file }, sources) {
  const worlds = [];
  const add = (kind, world) => defined[kind].length > 0 && worlds.push(world);
  add("tools", "tool");
  add("hooks", "hook");
  if (defined.providers.length > 0) worlds.push(defined.providers.some(({ streams }) => streams) ? "streaming-provider" : "provider");
  add("evaluations", "eval");
  add("resources", "resource");
  add("prompts", "prompt");
  if (worlds.length === 0) {
    throw new BuildError([nothing(file, sources)]);
  }
  const interfaces = isShared ? ["cancellation"] : [];
  if (defined.resources.some(({ subscribes }) => subscribes)) interfaces.push("subscriptions");
  if ([...defined.resources, ...defined.prompts].some(({ completes }) => completes)) interfaces.push("completions");
  const names = Object.fromEntries(Object.entries(defined).map(([kind, all]) => [kind, all.map(({ key }) => key)]));
  return { worlds, exports: interfaces, names };
}
