// Lists the tools of an MCP server as the official SDK for TypeScript sees them, as a line of JSON.
// Arguments: the folder in which the SDK is installed, the server's program, and its arguments.

const { createRequire } = require("node:module");

const [folder, command, ...args] = process.argv.slice(2);
const sdk = createRequire(`${folder}/`);
const { Client } = sdk("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = sdk("@modelcontextprotocol/sdk/client/stdio.js");

async function main() {
  const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" });
  const client = new Client({ name: "list-tools", version: "1" });
  await client.connect(transport);
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools({ cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  console.log(JSON.stringify(tools));
  await client.close();
}

main();
