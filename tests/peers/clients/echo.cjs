// A client with the official SDK for TypeScript, 1.x or 2.x, which times its calls of a server's tool `echo`.
//
// Arguments: the folder in which the SDK is installed, its package, the arguments of the tool as JSON, and the server's program.
// Each line of the input says how many calls are in flight at a time, and how many follow each other in each place. When all
// have ended, how long that took is printed, in nanoseconds.

const { createRequire } = require("node:module");
const { createInterface } = require("node:readline");

const [folder, name, json, command] = process.argv.slice(2);
const load = createRequire(`${folder}/`);
const isFirst = name === "@modelcontextprotocol/sdk";
const { Client } = load(isFirst ? `${name}/client/index.js` : name);
const { StdioClientTransport } = load(isFirst ? `${name}/client/stdio.js` : `${name}/stdio`);

async function main() {
  const client = new Client({ name: "peers", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  await client.connect(new StdioClientTransport({ command, args: [], env: process.env, stderr: "ignore" }));
  const { text } = JSON.parse(json);
  const call = async () => {
    const result = await client.callTool({ name: "echo", arguments: { text } });
    if (result.content[0].text !== text) throw new Error("another text");
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const [inFlight, inRow] = line.split(" ").map(Number);
    const place = async () => {
      for (let i = 0; i < inRow; i++) await call();
    };
    const began = process.hrtime.bigint();
    await Promise.all(Array.from({ length: inFlight }, place));
    console.log(String(process.hrtime.bigint() - began));
  }
  await client.close();
}

main();
