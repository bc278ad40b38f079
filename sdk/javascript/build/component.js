/** Makes a component of a plugin. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { componentize } from "componentize-qjs";

import { bundle } from "./bundle.js";
import { imports as importsOf } from "./capabilities.js";
import { describe } from "./describe.js";
import { BuildError, Sources } from "./problem.js";
import { read } from "./project.js";
import { rename } from "./rename.js";
import { compact } from "./source-map.js";
import { write } from "./wit.js";

/** The file of this package that has each export. */
const EXPORTS = {
  tool: ["tools", "tools"],
  hook: ["hooks", "hooks"],
  provider: ["providers", "providers"],
  "streaming-provider": ["providers", "providers, providerStream"],
  eval: ["evals", "evals"],
  resource: ["resources", "resources"],
  prompt: ["prompts", "prompts"],
  subscriptions: ["resources", "subscriptions"],
  completions: ["completions", "completions"],
  cancellation: ["lifecycle", "cancellation"],
};

/**
 * Makes a component of the plugin in a folder.
 *
 * @param {string} folder With `plugin.toml`, and `plugin.js` or `plugin.ts`.
 * @param {{ minify?: boolean, optSize?: boolean }} [options]
 * @returns {Promise<{ component: Uint8Array, worlds: string[], imports: string[], names: object, bundleSize: number }>}
 * @throws {BuildError} Where the plugin is not as it should be.
 */
export async function build(folder, { minify = true, optSize = true } = {}) {
  const project = read(path.resolve(folder));
  const { worlds, exports, web, imported, names } = await describe(project);
  const imports = [...new Set([...importsOf(project.capabilities, web), ...imported])];
  const { code, map } = await bundle(project, modules(project, { worlds, exports, imports }), { minify, sources: new Sources(project.folder) });
  const source = `${code}\nglobalThis.__tenonSourceMap = ${JSON.stringify(compact(map, project.folder))};\n`;
  const temporary = await mkdtemp(path.join(tmpdir(), "tenon-js-"));
  try {
    const wit = path.join(temporary, "wit");
    await write(wit, { worlds, exports, imports });
    // A module that is loaded leaves fewer copies of its text in the component than one that is passed.
    await writeFile(path.join(temporary, "bundle.js"), source);
    const entry = { jsSource: 'export * from "./bundle.js";\n', jsPath: path.join(temporary, "entry.js"), moduleRoot: temporary };
    await writeFile(entry.jsPath, entry.jsSource);
    const { component } = await componentize({ witPath: wit, world: "component", optSize, ...entry });
    return { component: rename(component), worlds, imports, names, bundleSize: source.length };
  } catch (error) {
    throw error instanceof BuildError ? error : new BuildError([{ message: `componentize-qjs: ${error.message}` }]);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** The modules around the plugin: what it imports of the host, and what it exports. */
function modules({ identity, isShared }, { worlds, exports, imports }) {
  const connected = imports.map((name, index) => ({ name, variable: `i${index}`, key: name.split("@")[0] }));
  const connect = [
    'import { connect } from "./src/connection.js";',
    ...connected.map(({ name, variable }) => `import ${variable} from ${JSON.stringify(name)};`),
    `const host = { ${connected.map(({ key, variable }) => `${JSON.stringify(key)}: ${variable}`).join(", ")} };`,
    // The map stands at the end of the bundle. Before that the plugin is built, and the host is not there yet.
    "connect(() => globalThis.__tenonSourceMap && host);",
  ];
  const entry = [
    'import "tenon:connect";',
    'import "tenon:stall";',
    ...(isShared ? ['import "tenon:cancellation";'] : []),
    'import { lifecycle as make } from "./src/exports/lifecycle.js";',
    'import "tenon:plugin";',
    `export const lifecycle = make(${JSON.stringify(identity)});`,
    ...[...worlds, ...exports].map((name) => `export { ${EXPORTS[name][1]} } from "./src/exports/${EXPORTS[name][0]}.js";`),
  ];
  return { "tenon:connect": connect.join("\n"), "tenon:entry": entry.join("\n") };
}
