// A plugin in JavaScript that has what the conformance suite of MCP asks a server for, under the names that the suite
// knows.
//
// Interfaces that the world imports are modules; those that it exports are exported under their
// names in camel case. Options are values or `null`, and variants are `{ tag, val }`.

import inference from "tenon:plugin/inference@0.2.0";
import log from "tenon:plugin/log@0.2.0";
import notify from "tenon:plugin/notify@0.2.0";
import user from "tenon:plugin/user@0.2.0";
import atomics from "wasi:keyvalue/atomics@0.2.0-draft2";
import store from "wasi:keyvalue/store@0.2.0-draft2";

const PNG = Uint8Array.fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
);
const WAV = Uint8Array.fromBase64("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=");

// The URI of the resource that changes.
const WATCHED = "test://watched-resource";

// An error of `tenon:plugin/types`; anything else that is thrown is a trap.
function error(code, message) {
  return { code, message, retryAfter: null, data: null };
}

// Refuses a cursor: every listing has one page.
function onlyPage(cursor) {
  if (cursor !== null) throw error("invalid-input", `there is no page ${JSON.stringify(cursor)}`);
}

// Content

const text = (val) => ({ tag: "text", val });
const image = () => ({ tag: "image", val: { data: PNG, mimeType: "image/png" } });
const embedded = (uri, words, mimeType) => ({
  tag: "resource",
  val: { uri, mimeType, body: text(words), extra: null },
});
const block = (body) => ({ body, extra: null });

function result(...content) {
  return { content: content.map(block), structured: null, isError: false, extra: null };
}

// What is kept. Each call has a new instance, so that nothing is kept in variables.

// What an import throws has its error as `payload`. One of the contract may be thrown again as it is; one of the store
// would be a trap then.
function ofContract(thrown) {
  const problem = thrown.payload?.tag === "store-error" ? thrown.payload.val : thrown.payload;
  switch (problem?.tag) {
    case "access-denied":
      return error("denied", "state is not granted");
    case "no-such-store":
      return error("not-found", "there is no such state");
    case "other":
      return error("failed", problem.val);
    default:
      return thrown;
  }
}

// There is neither a `TextEncoder` nor a `TextDecoder`: what is escaped is the UTF-8 of a text.
function encode(value) {
  const bytes = unescape(encodeURIComponent(JSON.stringify(value)));
  return Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
}

function decode(kept) {
  const bytes = Array.from(kept, (byte) => String.fromCharCode(byte)).join("");
  return JSON.parse(decodeURIComponent(escape(bytes)));
}

// How often the watched resource has changed.
function updates() {
  try {
    const kept = store.open("default").get("updates");
    return kept ? decode(kept) : 0;
  } catch (thrown) {
    throw ofContract(thrown);
  }
}

// Says that it has changed once more.
function update() {
  try {
    atomics.increment(store.open("default"), "updates", 1);
  } catch (thrown) {
    throw ofContract(thrown);
  }
}

// Adds a word to those that are kept, and returns how many these are.
function remember(word) {
  try {
    let seen = atomics.Cas.new(store.open("default"), "words");
    for (;;) {
      const kept = seen.current();
      const words = kept ? [...decode(kept), word] : [word];
      try {
        atomics.swap(seen, encode(words));
        return words.length;
      } catch (thrown) {
        if (thrown.payload?.tag !== "cas-failed") throw thrown;
        // Another call was faster, and this is what it has written.
        seen = thrown.payload.val;
      }
    }
  } catch (thrown) {
    throw ofContract(thrown);
  }
}

// Tools: what each is for, the names of its arguments, which are texts, and what it does with these and the context of
// the call.

const TOOLS = {
  test_simple_text: {
    description: "Tests simple text content response",
    run: () => result(text("This is a simple text response for testing.")),
  },
  test_image_content: {
    description: "Tests image content response",
    run: () => result(image()),
  },
  test_audio_content: {
    description: "Tests audio content response",
    run: () => result({ tag: "audio", val: { data: WAV, mimeType: "audio/wav" } }),
  },
  test_embedded_resource: {
    description: "Tests embedded resource content response",
    run() {
      const words = "This is an embedded resource content.";
      return result(embedded("test://embedded-resource", words, "text/plain"));
    },
  },
  test_multiple_content_types: {
    description: "Tests response with multiple content types",
    run() {
      const data = '{"test":"data","value":123}';
      return result(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", data, "application/json"),
      );
    },
  },
  test_tool_with_logging: {
    description: "Tests tool that emits log messages during execution",
    run() {
      log.write("info", "Tool execution started", []);
      log.write("info", "Tool processing data", []);
      log.write("info", "Tool execution completed", []);
      return result(text("Tool with logging executed successfully"));
    },
  },
  test_tool_with_progress: {
    description: "Tests tool that reports progress notifications",
    run(_, { callId }) {
      for (const step of [0, 50, 100]) {
        notify.progress(callId, step, 100, `Completed step ${step} of 100`);
      }
      return result(text("Tool with progress executed successfully"));
    },
  },
  test_error_handling: {
    description: "Tests error response handling",
    run() {
      const words = "This tool intentionally returns an error for testing";
      return { ...result(text(words)), isError: true };
    },
  },
  test_update_watched_resource: {
    description: "Changes the watched resource",
    run() {
      update();
      notify.resourceUpdated(WATCHED);
      return result(text("Resource updated"));
    },
  },
  test_trigger_tool_change: {
    description: "Says that the list of tools has changed",
    run() {
      notify.contributionsChanged();
      return result(text("Tools changed"));
    },
  },
  test_sampling: {
    description: "Tests sampling",
    arguments: ["prompt"],
    run({ prompt }) {
      const { parts } = inference.complete({
        model: "default",
        messages: [{ role: "user", parts: [text(prompt)] }],
        tools: [],
        toolChoice: { tag: "auto" },
        sampling: { maxTokens: 100, temperature: null, topP: null, stopSequences: [], seed: null },
        responseSchema: null,
        extra: null,
      });
      const texts = parts.filter(({ tag }) => tag === "text").map(({ val }) => val);
      return result(text(`LLM response: ${texts.join("")}`));
    },
  },
  test_elicitation: {
    description: "Tests elicitation",
    arguments: ["message"],
    run({ message }) {
      const schema = {
        type: "object",
        properties: { username: { type: "string" }, email: { type: "string" } },
        required: ["username"],
      };
      const answer = user.ask({ message, schema: JSON.stringify(schema), extra: null });
      if (answer.tag === "declined") return result(text("User response: decline"));
      if (answer.tag === "cancelled") return result(text("User response: cancel"));
      const { username, email = "" } = JSON.parse(answer.val);
      return result(text(`User response: accept, ${username}, ${email}`));
    },
  },
  test_remember: {
    description: "Remembers a word",
    arguments: ["word"],
    run: ({ word }) => result(text(`${remember(word)}`)),
  },
  test_wait: {
    description: "Waits until nobody wants an answer",
    run() {
      for (;;);
    },
  },
};

function definition([name, { description, arguments: names = [] }]) {
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  return {
    name,
    title: null,
    description,
    inputSchema: JSON.stringify({ type: "object", properties, required: names }),
    outputSchema: null,
    annotations: { readOnly: null, destructive: null, idempotent: null, openWorld: null },
    capabilities: [],
    extra: null,
  };
}

export const tools = {
  listTools() {
    return Object.entries(TOOLS).map(definition);
  },

  callTool(name, args, context) {
    if (!Object.hasOwn(TOOLS, name)) throw error("not-found", `there is no tool ${name}`);
    return TOOLS[name].run(JSON.parse(args), context);
  },
};

// Resources

const TEMPLATE = "test://template/{id}/data";

function link(uri, title, description, mimeType) {
  const name = uri.slice("test://".length);
  return { uri, name, title, description, mimeType, size: null };
}

const RESOURCES = [
  link("test://static-text", "Static Text Resource", "A static text resource", "text/plain"),
  link("test://static-binary", "Static Binary Resource", "A static image", "image/png"),
  link(WATCHED, "Watched Resource", "A resource that a tool changes", "text/plain"),
];

function contents(uri, body, mimeType) {
  return [{ uri, mimeType, body, extra: null }];
}

export const resources = {
  listResources(cursor, _context) {
    onlyPage(cursor);
    return { resources: RESOURCES.map((link) => ({ link, extra: null })), next: null };
  },

  listTemplates(cursor, _context) {
    onlyPage(cursor);
    const template = {
      uriTemplate: TEMPLATE,
      name: "template",
      title: "Resource Template",
      description: "A resource template with parameter substitution",
      mimeType: "application/json",
      extra: null,
    };
    return { templates: [template], next: null };
  },

  readResource(uri, _context) {
    if (uri === "test://static-text") {
      const words = "This is the content of the static text resource.";
      return contents(uri, text(words), "text/plain");
    }
    if (uri === "test://static-binary") return contents(uri, { tag: "blob", val: PNG }, "image/png");
    if (uri === WATCHED) {
      const words = `Watched resource content, changed ${updates()} times`;
      return contents(uri, text(words), "text/plain");
    }
    const [, id] = uri.match(/^test:\/\/template\/([^/]+)\/data$/) ?? [];
    if (id === undefined) throw error("not-found", `there is no resource ${uri}`);
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    return contents(uri, text(JSON.stringify(data)), "application/json");
  },
};

// Says what can be subscribed to. No instance knows who did, so every change is told.
export const subscriptions = {
  subscribe(uri, _context) {
    if (uri !== WATCHED) throw error("not-found", `${uri} never changes`);
  },

  unsubscribe(_uri, _context) {},
};

// Prompts

function argument(name, description) {
  return { name, title: null, description, required: true, extra: null };
}

const PROMPTS = {
  test_simple_prompt: {
    description: "A simple prompt without arguments",
    arguments: [],
    fillIn: () => [text("This is a simple prompt for testing.")],
  },
  test_prompt_with_arguments: {
    description: "A prompt with required arguments",
    arguments: [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
    fillIn: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    description: "A prompt that includes an embedded resource",
    arguments: [argument("resourceUri", "URI of the resource to embed")],
    fillIn: ({ resourceUri }) => [
      embedded(resourceUri, "Embedded resource content for testing.", "text/plain"),
      text("Please process the embedded resource above."),
    ],
  },
  test_prompt_with_image: {
    description: "A prompt that includes image content",
    arguments: [],
    fillIn: () => [image(), text("Please analyze the image above.")],
  },
};

export const prompts = {
  listPrompts(cursor, _context) {
    onlyPage(cursor);
    const listed = Object.entries(PROMPTS).map(([name, { description, arguments: args }]) => {
      return { name, title: null, description, arguments: args, extra: null };
    });
    return { prompts: listed, next: null };
  },

  getPrompt(name, args, _context) {
    if (!Object.hasOwn(PROMPTS, name)) throw error("not-found", `there is no prompt ${name}`);
    const { description, arguments: known, fillIn } = PROMPTS[name];
    const given = new Map(args);
    if (given.size !== known.length || !known.every(({ name }) => given.has(name))) {
      throw error("invalid-input", `${name} takes other arguments`);
    }
    const messages = fillIn(Object.fromEntries(given)).map((content) => {
      return { role: "user", content: block(content), extra: null };
    });
    return { description, messages, extra: null };
  },
};

const VALUES = {
  "prompt test_prompt_with_arguments arg1": ["paris", "park", "party", "test", "testing"],
  [`resource-template ${TEMPLATE} id`]: ["123", "124", "200"],
};

export const completions = {
  completeArgument({ reference, name, value }, _context) {
    const known = VALUES[`${reference.tag} ${reference.val} ${name}`] ?? [];
    const values = known.filter((known) => known.startsWith(value));
    return { values, total: values.length, hasMore: false, extra: null };
  },
};

// The rest of the world, of which this plugin has nothing.

export const lifecycle = {
  start() {
    const description = "Has what the conformance suite of MCP asks a server for.";
    return { name: "everything", version: "0.1.0", description, extra: null };
  },

  stop() {},
};

export const cancellation = {
  // Needed on shared instances only.
  cancel(_callId) {},
};

export const hooks = {
  listHooks() {
    return [];
  },

  handleEvent({ point }, _context) {
    throw error("not-found", `${point} is not handled`);
  },
};

export const providers = {
  listProviders() {
    return [];
  },

  listModels() {
    return [];
  },

  complete({ model }, _context) {
    throw error("not-found", `there is no model ${model}`);
  },
};

export const evals = {
  listEvals() {
    return [];
  },

  evaluate(strategy, _subject, _options, _context) {
    throw error("not-found", `there is no strategy ${strategy}`);
  },
};
