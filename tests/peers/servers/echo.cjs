// A server with the official SDK for TypeScript, over stdio, whose one tool echoes.
// Argument: the folder in which the SDK is installed.

const { createRequire } = require("node:module");

const load = createRequire(`${process.argv[2]}/`);
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = load("zod");

const server = new McpServer({ name: "echo", version: "1" });
const tool = { description: "Answers with its `text`", inputSchema: { text: z.string() } };
server.registerTool("echo", tool, async ({ text }) => ({ content: [{ type: "text", text }] }));
server.connect(new StdioServerTransport());
