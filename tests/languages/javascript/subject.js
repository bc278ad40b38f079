// A plugin in JavaScript.
//
// Interfaces that the world imports are modules; those that it exports are exported under their
// names in camel case. Options are values or `null`, and variants are `{ tag, val }`.

import log from "tenon:plugin/log@0.2.0";

const TOOLS = {
  echo: { description: "Answers with its `text`.", run: ({ text = "" }) => answer(text, false) },
  fail: {
    description: "Answers with an error, the `text`.",
    run: ({ text = "" }) => answer(text, true),
  },
  hang: {
    description: "Never answers.",
    run() {
      for (;;);
    },
  },
};

const SCHEMA = JSON.stringify({ type: "object", properties: { text: { type: "string" } } });

function answer(text, isError) {
  const content = [{ body: { tag: "text", val: text }, extra: null }];
  return { content, structured: null, isError, extra: null };
}

function definition([name, { description }]) {
  return {
    name,
    title: null,
    description,
    inputSchema: SCHEMA,
    outputSchema: null,
    annotations: { readOnly: null, destructive: null, idempotent: null, openWorld: null },
    capabilities: [],
    extra: null,
  };
}

export const lifecycle = {
  async start() {
    return { name: "subject", version: "0.1.0", description: "Three tools in JavaScript.", extra: null };
  },

  async stop() {},
};

export const tools = {
  async listTools() {
    return Object.entries(TOOLS).map(definition);
  },

  async callTool(name, args, context) {
    log.write("debug", `${name} is called`, [["call", context.callId]]);
    const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : null;
    // An error of `tenon:plugin/types`; anything else that is thrown is a trap.
    if (!tool) throw { code: "not-found", message: `there is no tool ${JSON.stringify(name)}` };
    return tool.run(JSON.parse(args));
  },
};
