// A client of the matrix with the SDK for TypeScript: 1.x, which knows the legacy era only, or 2.x.
//
// Arguments: the folder in which the SDK is installed, its major version, and as JSON how to connect (`command` and
// `args`, or `url`), in which era, and to which servers. What the client sees of each server is printed as a line of JSON.

const { createRequire } = require("node:module");

const [folder, version, json] = process.argv.slice(2);
const settings = JSON.parse(json);
const load = createRequire(`${folder}/`);

/** What the scenario needs of each version of the SDK. */
const versions = {
  1: () => ({
    ...load("@modelcontextprotocol/sdk/client/index.js"),
    ...load("@modelcontextprotocol/sdk/client/stdio.js"),
    ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    elicitation: load("@modelcontextprotocol/sdk/types.js").ElicitRequestSchema,
    options: {},
    callTool: (client, request, options) => client.callTool(request, undefined, options),
    revision: (_, transport) => transport.revision,
  }),
  2: () => ({
    ...load("@modelcontextprotocol/client"),
    ...load("@modelcontextprotocol/client/stdio"),
    elicitation: "elicitation/create",
    options: { versionNegotiation: { mode: settings.era === "legacy" ? "legacy" : "auto" } },
    callTool: (client, request, options) => client.callTool(request, options),
    revision: (client) => client.getNegotiatedProtocolVersion(),
  }),
};
const sdk = versions[version]();

function connection() {
  if (settings.url) return new sdk.StreamableHTTPClientTransport(new URL(settings.url));
  const { command, args } = settings;
  return new sdk.StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
}

/** Uses everything that a server has. */
async function see(client, asked, server) {
  const isOwn = (name) => name.startsWith(`${server}__`) || name.startsWith(`test://${server}/`);
  const call = async (tool, args, options) => {
    const request = { name: `${server}__${tool}`, arguments: args };
    return (await sdk.callTool(client, request, options)).content[0].text;
  };
  const tools = (await client.listTools()).tools.map((tool) => tool.name).filter(isOwn);
  const greet = await call("greet", { name: "Ada" });
  const resources = (await client.listResources()).resources.map((it) => it.uri).filter(isOwn);
  const read = (await client.readResource({ uri: resources[0] })).contents[0].text;
  const prompts = (await client.listPrompts()).prompts.map((it) => it.name).filter(isOwn);
  const prompt = await client.getPrompt({ name: prompts[0], arguments: { to: "Bob" } });

  const progress = [];
  let enough;
  const onprogress = (it) => {
    if (progress.push([it.progress, it.total, it.message]) === 2) enough = call("enough", {});
  };
  const count = await call("count", {}, { onprogress });
  const abort = new AbortController();
  const options = { signal: abort.signal, onprogress: () => abort.abort("abandoned") };
  const wait = await call("wait", {}, options).catch((error) => {
    if (!abort.signal.aborted) throw error;
    return null;
  });
  const cancelled = await call("cancelled", {});

  const ask = await call("ask", {});
  return {
    tools, greet, resources, read, prompts, prompt: prompt.messages[0].content.text,
    count, progress, enough: await enough, wait, cancelled, ask, asked: asked.splice(0),
  };
}

async function main() {
  const transport = connection();
  // Version 1.x tells its transport alone.
  transport.setProtocolVersion = ((set) => (revision) => {
    transport.revision = revision;
    set?.call(transport, revision);
  })(transport.setProtocolVersion);
  const options = { capabilities: { elicitation: {} }, ...sdk.options };
  const client = new sdk.Client({ name: "matrix", version: "1" }, options);
  const asked = [];
  client.setRequestHandler(sdk.elicitation, (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { color: "blue" } };
  });
  await client.connect(transport);
  const servers = {};
  for (const server of settings.servers) servers[server] = await see(client, asked, server);
  console.log(JSON.stringify({ revision: sdk.revision(client, transport), servers }));
  await client.close();
}

main();
