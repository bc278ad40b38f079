/** The imports of a component, as a test scripts them: in the shape in which a component gets them. */

import { TenonError, toRecord } from "../src/errors.js";
import { fromRequest, toCompletion } from "../src/model.js";
import { toErrorResult, toToolResult } from "../src/result.js";
import { problems } from "../src/validate.js";

/** What a script may have. */
export const SCRIPT = ["settings", "secrets", "state", "fetch", "user", "pages", "models", "tools", "messaging", "memory", "caller"];

/** What is wrong with a call of what a test did not grant. */
function denied(what, capability, value) {
  return thrown("denied", `${what} is not granted; plugin.toml requests it with \`${capability} = ${JSON.stringify([value])}\` under [capabilities]`);
}

/** An error of the contract as imports throw it. */
function thrown(code, message) {
  return Object.assign(new Error(message), { payload: toRecord(new TenonError(code, message)) });
}

/** Calls what a test scripted, whose errors become those of the contract. */
async function scripted(answer) {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof TenonError) throw Object.assign(new Error(error.message), { payload: toRecord(error) });
    throw error;
  }
}

/** The imports by their names. */
export function imports(script, host, keyvalue) {
  const all = { ...always(script, host) };
  if (script.secrets) all["tenon:plugin/secrets"] = secrets(script.secrets);
  if (keyvalue.isGranted) Object.assign(all, { "wasi:keyvalue/store": keyvalue.store, "wasi:keyvalue/atomics": keyvalue.atomics });
  if (script.user || script.pages) all["tenon:plugin/user"] = user(script, host);
  if (script.models) all["tenon:plugin/inference"] = inference(script.models);
  if (script.tools) all["tenon:plugin/host-tools"] = tools(script.tools);
  if (script.messaging) all["tenon:plugin/messaging"] = messaging(script.messaging, host);
  if (script.memory) all["tenon:plugin/memory"] = memory(script.memory);
  return all;
}

function always({ settings = {} }, host) {
  return {
    "tenon:plugin/config": {
      get: (key) => (Object.hasOwn(settings, key) ? JSON.stringify(settings[key]) : null),
      all: () => JSON.stringify(settings),
    },
    "tenon:plugin/log": {
      write: (level, message, fields) => void host.logged.push({ level, message, fields: Object.fromEntries(fields) }),
    },
    "tenon:plugin/notify": {
      contributionsChanged: () => void host.contributionChanges++,
      progress: (callId, progress, total, message) => void host.progress.push({ callId, progress, total: total ?? undefined, message: message ?? undefined }),
      resourceUpdated: (uri) => void host.resourceUpdates.push(uri),
    },
  };
}

function secrets(values) {
  return {
    get(name) {
      if (!Object.hasOwn(values, name)) throw denied(`the secret ${JSON.stringify(name)}`, "secrets", name);
      if (values[name] === undefined || values[name] === null) throw thrown("not-found", `nobody has set the secret ${JSON.stringify(name)}`);
      return values[name];
    },
  };
}

/** What an answer of a user may be: the content of the form, or what else became of it. */
function toAnswer(answer, schema) {
  if (answer === "declined" || answer === "cancelled") return { tag: answer };
  const found = problems(answer, schema);
  if (found.length > 0) throw new TypeError(`the test answers for the user with what the form does not allow: ${found.join("; ")}`);
  return { tag: "accepted", val: JSON.stringify(answer) };
}

function user({ user, pages }, host) {
  return {
    async ask({ message, schema }) {
      if (!user) throw denied("asking the user", "user", "ask");
      const form = JSON.parse(schema);
      host.questions.push({ message, schema: form });
      return scripted(async () => toAnswer(typeof user === "function" ? await user(message, form) : user, form));
    },
    async askUrl({ message, url }) {
      if (!pages) throw denied("asking the user to open pages", "user", "ask-url");
      host.questions.push({ message, url });
      return scripted(() => (typeof pages === "function" ? pages(message, url) : pages));
    },
  };
}

function inference(models) {
  return {
    async complete(request) {
      const answer = models[request.model];
      if (answer === undefined) throw denied(`the model ${JSON.stringify(request.model)}`, "providers", request.model);
      return scripted(async () => toCompletion(typeof answer === "function" ? await answer(fromRequest(request)) : answer, request.model));
    },
  };
}

function tools(granted) {
  return {
    async listTools() {
      return Object.keys(granted).map((name) => ({
        name,
        title: null,
        description: name,
        inputSchema: '{"type":"object"}',
        outputSchema: null,
        annotations: { readOnly: null, destructive: null, idempotent: null, openWorld: null },
        capabilities: [],
        extra: null,
      }));
    },
    async callTool(name, args) {
      if (!Object.hasOwn(granted, name)) throw denied(`the tool ${JSON.stringify(name)}`, "tools", name);
      const answer = granted[name];
      return scripted(async () => {
        try {
          return toToolResult(typeof answer === "function" ? await answer(JSON.parse(args)) : answer);
        } catch (error) {
          if (error?.name !== "ToolError") throw error;
          return toErrorResult(error);
        }
      });
    },
  };
}

function messaging(send, host) {
  return {
    async sendMessage({ channel, text, extra }) {
      const message = { channel: channel ?? undefined, text, extra: extra == null ? undefined : JSON.parse(extra) };
      if (Array.isArray(send) && !send.includes(channel ?? "*") && !send.includes("*")) throw denied(`the channel ${JSON.stringify(channel)}`, "messaging", channel ?? "*");
      await scripted(() => (typeof send === "function" ? send(message) : undefined));
      host.messages.push(message);
    },
  };
}

function memory(entries) {
  return {
    async searchMemory(query, limit) {
      const found = await scripted(() => (typeof entries === "function" ? entries(query, limit) : entries));
      return found.slice(0, limit).map((entry) => {
        const { text, score = 1, source = null } = typeof entry === "string" ? { text: entry } : entry;
        return { text, score, source };
      });
    },
  };
}
