/** The plugin, its dependencies and what it uses of this package, as one module. */

import { readdirSync, realpathSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, transformSync } from "esbuild";

import { nearest } from "../src/nearest.js";
import { builtin, problem as builtinProblem } from "./node-modules.js";
import { BuildError, JSON_SYNTAX } from "./problem.js";

/** The folder of this package. */
export const SDK = realpathSync(fileURLToPath(new URL("..", import.meta.url)));

/** How files are imported that are neither code nor JSON. */
const LOADERS = { ".txt": "text", ".md": "text", ".html": "text", ".sql": "text", ".bin": "binary", ".png": "binary", ".wasm": "binary" };

/** The module that begins everything, which is made for each bundle. */
const ENTRY = "tenon:entry";

/**
 * Bundles a plugin.
 *
 * @param {{ folder: string, file: string }} project
 * @param {Record<string, string>} modules Modules that are made, by their names; `tenon:entry` is the first.
 * @param {{ minify?: boolean, isComponent?: boolean }} options
 * @returns {Promise<{ code: string, map: object, web: Set<string>, imported: Set<string>, warnings: object[] }>} `web` are
 *   the files of the folder `web` that the plugin uses; `imported` the interfaces that it imports itself.
 * @throws {BuildError}
 */
export async function bundle(project, modules, { minify = false, sources }) {
  const imported = new Set();
  try {
    const result = await build({
      entryPoints: [ENTRY],
      absWorkingDir: project.folder,
      bundle: true,
      write: false,
      outfile: "bundle.js",
      format: "esm",
      platform: "browser",
      mainFields: ["browser", "module", "main"],
      conditions: ["tenon"],
      target: "es2023",
      // The engine counts columns in bytes and source maps count them in UTF-16: in ASCII both are the same.
      charset: "ascii",
      inject: [path.join(SDK, "web/globals.js")],
      define: { "process.env.NODE_ENV": '"production"', global: "globalThis" },
      loader: LOADERS,
      legalComments: "eof",
      minify,
      keepNames: false,
      sourcemap: "external",
      metafile: true,
      logLevel: "silent",
      plugins: [made(modules, project), builtins(), interfaces(imported)],
    });
    const [map, code] = [result.outputFiles.find(({ path: file }) => file.endsWith(".map")), result.outputFiles.find(({ path: file }) => file.endsWith(".js"))];
    const [output] = Object.values(result.metafile.outputs).filter(({ inputs }) => Object.keys(inputs).length > 0);
    return { code: code.text, map: JSON.parse(map.text), web: usedOfWeb(output, project.folder), imported, warnings: result.warnings };
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    throw new BuildError(error.errors.map((each) => toProblem(each, sources)));
  }
}

/** Modules that are made for the bundle. */
function made(modules, { folder, file }) {
  return {
    name: "tenon-made",
    setup(build) {
      build.onResolve({ filter: /^tenon:(entry|connect|plugin|describe|cancellation|stall)$/ }, ({ path: name }) => {
        // What a plugin defines counts, whatever its package says of side effects.
        if (name === "tenon:plugin") return { path: path.join(folder, file), sideEffects: true };
        if (name === "tenon:cancellation" || name === "tenon:stall") return { path: path.join(SDK, `web/${name.slice("tenon:".length)}.js`), sideEffects: true };
        return { path: name, namespace: "tenon", sideEffects: true };
      });
      build.onLoad({ filter: /.*/, namespace: "tenon" }, ({ path: name }) => ({ contents: modules[name], resolveDir: SDK }));
      // A plugin has one copy of this package, the one that builds it.
      build.onResolve({ filter: /^whatwg-url-minimum$/ }, (args) => ofWeb(build, args));
      build.onResolve({ filter: /^@tenon\/sdk$/ }, () => ({ path: path.join(SDK, "src/index.js") }));
      build.onResolve({ filter: /^@tenon\/sdk\/testing$/ }, () => ({
        errors: [{ text: "`@tenon/sdk/testing` is for tests, and not for the plugin itself", notes: [{ text: "import it in `plugin.test.js` only" }] }],
      }));
      build.onResolve({ filter: /^@tenon\/sdk\/(build|register)$/ }, ({ path: name }) => ({
        errors: [{ text: `\`${name}\` runs under Node, and not in the plugin`, notes: [{ text: "what plugins import is in `@tenon/sdk`" }] }],
      }));
    },
  };
}

/** A library that `web` uses: it defines classes and does nothing else, which its package does not say. */
async function ofWeb(build, { path: name, kind, pluginData }) {
  if (pluginData === "asked") return undefined;
  const { path: file } = await build.resolve(name, { kind, resolveDir: SDK, pluginData: "asked" });
  return { path: file, sideEffects: false };
}

/** Modules of Node: a problem if the plugin imports one, and an error when it is loaded if a dependency requires one. */
function builtins() {
  return {
    name: "tenon-builtins",
    setup(build) {
      build.onResolve({ filter: /.*/ }, async (args) => {
        if (args.pluginData === "asked" || builtin(args.path) === undefined) return undefined;
        if (!args.path.startsWith("node:")) {
          const own = await build.resolve(args.path, { kind: args.kind, importer: args.importer, resolveDir: args.resolveDir, pluginData: "asked" });
          if (own.errors.length === 0 && !own.external) return own;
        }
        const { message, hint } = builtinProblem(args.path);
        if (args.kind === "require-call") return { path: args.path, namespace: "tenon-builtin", pluginData: `${message}; ${hint}` };
        return { errors: [{ text: message, notes: [{ text: hint }] }] };
      });
      build.onLoad({ filter: /.*/, namespace: "tenon-builtin" }, ({ pluginData }) => ({ contents: `throw new Error(${JSON.stringify(pluginData)});` }));
    },
  };
}

/** Interfaces of the host, which stay imports. */
function interfaces(imported) {
  return {
    name: "tenon-interfaces",
    setup(build) {
      build.onResolve({ filter: /^(tenon|wasi|[a-z-]+):[a-z-]+\/[a-z-]+(@.*)?$/ }, ({ path: name, importer }) => {
        if (!importer.startsWith("tenon")) imported.add(name);
        return { path: name, external: true };
      });
    },
  };
}

/** The files of `web` of which something is in the bundle. */
function usedOfWeb({ inputs }, folder) {
  const web = path.join(SDK, "web");
  const used = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const files = used.map(([file]) => path.resolve(folder, file)).filter((file) => path.dirname(file) === web);
  return new Set(files.map((file) => path.basename(file)));
}

function toProblem({ text, location, notes }, sources) {
  const [, missing] = text.match(/^Could not resolve "([^"]+)"/) ?? [];
  const [, file, name] = text.match(/^No matching export in "([^"]+)" for import "([^"]+)"/) ?? [];
  const noted = notes.map((note) => note.text).find(Boolean)?.replace(/^Did you mean to import "(.*)" instead\?$/, "did you mean `$1`?");
  const unloaded = text.match(/^No loader is configured for "([^"]+)" files: (.*)/);
  let message = text;
  let hint = noted;
  if (unloaded) [message, hint] = ofKind(unloaded[1], unloaded[2]);
  else if (missing) hint = remedy(missing, location && path.dirname(path.resolve(sources.folder, location.file)));
  else if (name) hint ??= file.endsWith("src/index.js") ? 'write `import { tool } from "@tenon/sdk";`' : `the file exports no such name: \`import name from\` takes its default, and \`import * as name from\` all of it`;
  else if (location && ["", "file"].includes(location.namespace)) hint = ofSyntax(text, location, notes, sources) ?? noted;
  if (missing) message = `there is no ${isFile(missing) ? `file \`${missing}\`` : `package \`${missing}\``}`;
  if (name) message = `there is no \`${name}\` in ${file.endsWith("src/index.js") ? '"@tenon/sdk"' : `\`${file}\``}`;
  if (!location || !["", "file"].includes(location.namespace)) return { message, hint };
  const place = { file: location.file, line: location.line, column: location.column + 1 };
  return { ...sources.at(place, { message, hint }), source: location.lineText };
}

function filesOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    // A folder that is not there has no files.
    return [];
  }
}

const isFile = (specifier) => /^[./]/.test(specifier);

/** What is wrong with importing a file of a kind that is not known. */
function ofKind(extension, file) {
  if (extension === ".node") return [`\`${file}\` is machine code for Node, which a component cannot load`, "use a package that is written in JavaScript only and runs in browsers"];
  return [`\`${file}\` is of a kind that cannot be imported`, `JSON can be, and ${Object.keys(LOADERS).map((each) => `\`${each}\``).join(", ")}: give the file such a name`];
}

/** What to do about a mistake of syntax; nothing where the bundler's own words say it. */
function ofSyntax(text, { file, line, lineText }, notes, sources) {
  if (file.endsWith(".json")) return JSON_SYNTAX;
  if (text.startsWith('"await" can only be used')) {
    const at = notes.find(({ location }) => location)?.location;
    return `write \`async\` before the function${at ? `, in line ${at.line}` : ""}`;
  }
  if (text.startsWith("The JSX syntax")) return "a plugin has no page to show: write text, or a template string";
  if (text.startsWith("Decorators are not valid")) return "decorators stand before classes and their members; wrap the function by hand: `const greeting = logged(() => …)`";
  if (!/^(Expected|Unexpected|Unterminated|Syntax error)/.test(text)) return undefined;
  if (/\.m?js$/.test(file) && isTypeScript(sources.lines(file).join("\n"))) return `this is TypeScript: name the file \`${file.replace(/js$/, "ts")}\``;
  if (text.startsWith("Unterminated")) return "write the quote or bracket that ends it; a text of several lines stands between backticks";
  return `look at what stands ${lineText.trim() ? "before it" : `above line ${line}`}: a bracket, a comma or a value is missing there, or one too many`;
}

function isTypeScript(text) {
  try {
    transformSync(text, { loader: "ts", logLevel: "silent" });
    return true;
  } catch {
    return false;
  }
}

/** What to use instead of packages that plugins have no use for. */
const INSTEAD = {
  "@modelcontextprotocol/sdk": 'the host speaks MCP; a plugin defines tools with `tool` of "@tenon/sdk"',
  axios: "use `fetch`, which needs no import",
  dotenv: 'settings are in `config` of "@tenon/sdk", secrets in `secrets`',
  "node-fetch": "use `fetch`, which needs no import",
};

function remedy(specifier, folder) {
  if (isFile(specifier)) {
    const near = folder && nearest(path.basename(specifier), filesOf(path.resolve(folder, path.dirname(specifier))));
    const rule = "the path is that of a file as seen from this one, with its extension";
    return near ? `did you mean \`${path.posix.dirname(specifier)}/${near}\`? ${rule}` : rule;
  }
  const [scope, name] = specifier.split("/");
  const instead = INSTEAD[specifier.startsWith("@") ? `${scope}/${name}` : scope];
  if (instead) return instead;
  return `\`npm install ${specifier.startsWith("@") ? `${scope}/${name}` : scope}\` installs it`;
}

