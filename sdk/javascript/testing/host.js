/** The host of a test. */

import { AsyncLocalStorage } from "node:async_hooks";

import { watched } from "../src/awaited.js";
import { connect } from "../src/connection.js";
import { fromBlock, fromContents, plainText, withoutNull } from "../src/content.js";
import { Context, within } from "../src/context.js";
import { TenonError } from "../src/errors.js";
import { toFailure, warnOfForgotten } from "../src/exports/failure.js";
import { complete } from "../src/exports/completions.js";
import { evaluate } from "../src/exports/evals.js";
import { handle } from "../src/exports/hooks.js";
import { fill } from "../src/exports/prompts.js";
import { completed } from "../src/exports/providers.js";
import { listed, read } from "../src/exports/resources.js";
import { callTool } from "../src/exports/tools.js";
import { DEFINITION } from "../src/kinds/definition.js";
import { fromCompletion, toRequest } from "../src/model.js";
import { fetchOf } from "./fetch.js";
import { Keyvalue } from "./keyvalue.js";
import * as services from "./services.js";

/** The host of the test that runs. */
const running = new AsyncLocalStorage();

connect(() => running.getStore()?.imports);

// The functions of the web that a host answers; outside of one they are Node's own.
const nodeFetch = globalThis.fetch;
globalThis.fetch = (...request) => {
  const host = running.getStore();
  return host ? watched("fetch", host.fetch(...request)) : nodeFetch(...request);
};

/** A host that does as it was told. */
export class Host {
  #calls = 0;
  #caller;
  #keyvalue;

  /** What the plugin logged: `{ level, message, fields }`. */
  logged = [];
  /** How far calls have come: `{ callId, progress, total, message }`. */
  progress = [];
  /** The messages that were sent: `{ channel, text, extra }`. */
  messages = [];
  /** The URIs of the resources that the plugin reported as changed. */
  resourceUpdates = [];
  /** How often the plugin said that it contributes something else now. */
  contributionChanges = 0;
  /** The requests of `fetch`, as `Request`. */
  requests = [];
  /** What the user was asked: `{ message, schema }` or `{ message, url }`. */
  questions = [];

  /**
   * @param {object} [script] What it grants, and how it answers; see the type `HostScript`.
   */
  constructor(script = {}) {
    const unknown = Object.keys(script).find((name) => !services.SCRIPT.includes(name));
    if (unknown) throw new TypeError(`a host has no \`${unknown}\`: it has ${services.SCRIPT.join(", ")}`);
    this.#caller = script.caller ?? {};
    this.#keyvalue = new Keyvalue(script.state);
    this.imports = services.imports(script, this, this.#keyvalue);
    this.fetch = fetchOf(script.fetch, this);
  }

  /** Runs a function within the host. */
  run(work) {
    return running.run(this, work);
  }

  /** A context for a call of a handler as a function. */
  context() {
    return new Context(this.#record());
  }

  /**
   * Calls a tool as a host does, with arguments that go through JSON and its schema.
   *
   * @returns {Promise<{ text: string, content: object[], structured: unknown, isError: boolean }>}
   * @throws {TenonError} Where it fails; that it answers with `isError` is no failure.
   */
  async callTool(tool, args = {}) {
    const entry = definition(tool, "tool");
    const result = await this.#serve(entry, (context) => callTool(entry, JSON.stringify(args), context));
    const content = result.content.map(fromBlock);
    return { text: plainText(content), content, structured: result.structured == null ? undefined : JSON.parse(result.structured), isError: result.isError };
  }

  /**
   * Has a hook handle a point, with a context that goes through JSON.
   *
   * @param {Function} hook What `hook` returned.
   * @param {object} context
   * @param {string} [point] Which, of a hook of several.
   * @returns {Promise<{ outcome: "continue", context: object } | { outcome: "replace", context: object } | { outcome: "veto", reason: string }>}
   */
  async handle(hook, context = {}, point = undefined) {
    const entry = definition(hook, "hook");
    const at = point ?? entry.points[0];
    const handlers = entry.points.includes(at) ? [{ handler: entry.handler, priority: 0, location: entry.location }] : [];
    const { tag, val } = await this.#serve(entry, (call) => handle(at, JSON.stringify(context), call, handlers));
    if (tag === "veto") return { outcome: tag, reason: val };
    return { outcome: tag, context: tag === "replace" ? JSON.parse(val) : context };
  }

  /** Reads a resource of a definition: `{ uri, mimeType, text | blob }` for each part. */
  async readResource(resource, uri) {
    const entry = definition(resource, "resource");
    return (await this.#serve(entry, (context) => read(uri, context, [entry]))).map(fromContents);
  }

  /** What a definition has in the list of resources: `{ uri, name, … }` for each. */
  async listResources(resource) {
    const entry = definition(resource, "resource");
    return (await this.#serve(entry, (context) => listed(entry, context))).map(({ link }) => withoutNull(link));
  }

  /** Fills a prompt in: `{ description, messages: [{ role, content }] }`. */
  async getPrompt(prompt, args = {}) {
    const entry = definition(prompt, "prompt");
    const { description, messages } = await this.#serve(entry, (context) => fill(entry, args, context));
    return { description, messages: messages.map(({ role, content }) => ({ role, content: fromBlock(content) })) };
  }

  /** The values that a prompt or resource suggests for an argument of which this was typed. */
  async completeArgument(of, name, typed = "", others = {}) {
    const entry = definition(of, "prompt or resource");
    return (await this.#serve(entry, (context) => complete(entry, name, typed, others, context))).values;
  }

  /** Has a strategy judge a subject: `{ score, verdict, findings }`. */
  async evaluate(evaluation, subject, options = {}) {
    const entry = definition(evaluation, "evaluation");
    const { score, verdict, findings } = await this.#serve(entry, (context) => evaluate(entry, JSON.stringify(subject), JSON.stringify(options), context));
    return { score, verdict, findings: findings.map(withoutNull) };
  }

  /** Has a provider complete a request, or a prompt: `{ text, parts, stopReason, usage }`. */
  async complete(provider, request) {
    const entry = definition(provider, "provider");
    const record = toRequest(request);
    return fromCompletion(await this.#serve(entry, (context) => completed(entry, record, context)));
  }

  /** The state of a scope as the plugin has left it: an object of JSON values by their keys. */
  state(scope) {
    return this.#keyvalue.values(scope);
  }

  #record() {
    const { agentId, sessionId, traceparent, timeLeft, extra } = this.#caller;
    return { callId: `call-${++this.#calls}`, agentId, sessionId, traceparent, timeLeft, extra: extra === undefined ? null : JSON.stringify(extra) };
  }

  async #serve(entry, work) {
    return this.run(async () => {
      try {
        const result = await within(this.#record(), work);
        warnOfForgotten(entry.what);
        return result;
      } catch (thrown) {
        warnOfForgotten(entry.what);
        const { code, message, retryAfter, data } = toFailure(thrown, entry.what);
        throw new TenonError(code, message, { retryAfter: retryAfter ?? undefined, data: data === null ? undefined : JSON.parse(data), cause: thrown });
      }
    });
  }
}

function definition(defined, kind) {
  const entry = defined?.[DEFINITION];
  const kinds = kind.split(" or ");
  const hint = `pass what \`${kinds[0]}(…)\` returned`;
  if (!entry) throw new TypeError(`this is no ${kind}: ${hint}`);
  if (!kinds.some((each) => entry.what.startsWith(each))) throw new TypeError(`this is ${entry.what}, and no ${kind}: ${hint}`);
  return entry;
}
