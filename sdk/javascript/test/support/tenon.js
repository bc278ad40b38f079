/** Runs the `tenon` command on plugins that are built for real. */

import { execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";

import { build } from "../../build/component.js";
import { read } from "../../build/project.js";
import { folder } from "./templates.js";

/** Why components cannot be run here; nothing if they can. */
export const unavailable = process.env.TENON_BIN ? false : "TENON_BIN does not say where the `tenon` command is";

/** Builds the plugin of a folder, approves it, and gives what calls it. */
export async function start(t, at) {
  const { identity } = read(at);
  const { component } = await build(at);
  writeFileSync(path.join(at, `${identity.name}.wasm`), component);
  const home = folder(t);
  const environment = { PATH: process.env.PATH, HOME: home };
  // The server of a test answers meanwhile, so the command cannot be waited for at once.
  const run = (args, env = {}) =>
    new Promise((resolve) => {
      const options = { env: { ...environment, ...env }, timeout: 120_000 };
      execFile(process.env.TENON_BIN, ["--trust", "--project", at, ...args], options, (error, stdout, stderr) => {
        resolve({ stdout: stdout.trimEnd(), stderr: stderr.trimEnd(), status: error?.code ?? 0 });
      });
    });
  await run(["approve", identity.name, "--yes"]);
  return {
    run,
    home,
    /** Calls a tool, and gives what the command prints. */
    call: (tool, args = {}, { env, more = [] } = {}) => run(["call", `${identity.name}__${tool}`, JSON.stringify(args), ...more], env),
  };
}

/** Serves the plugin of a folder to a client of MCP, which calls several tools at once. */
export async function serve(t, at, home) {
  const environment = { PATH: process.env.PATH, HOME: home, TENON_LOG: "warn" };
  const child = spawn(process.env.TENON_BIN, ["--trust", "--project", at, "serve"], { env: environment, stdio: ["pipe", "pipe", "pipe"] });
  t.after(() => child.kill());
  const answers = new Map();
  let [last, rest, stderr] = [0, "", ""];
  child.stderr.on("data", (chunk) => (stderr += chunk));
  child.stdout.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) answers.get(message.id)?.(message.result ?? message.error);
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const request = (method, params) => {
    const id = ++last;
    const answer = new Promise((resolve) => answers.set(id, resolve));
    send({ id, method, params });
    return { id, answer };
  };
  await request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }).answer;
  send({ method: "notifications/initialized" });
  return {
    begin: (name, args = {}) => request("tools/call", { name, arguments: args }),
    call: async (name, args) => (await request("tools/call", { name, arguments: args }).answer).content?.[0].text,
    cancel: (requestId) => send({ method: "notifications/cancelled", params: { requestId } }),
    stderr: () => stderr,
  };
}
