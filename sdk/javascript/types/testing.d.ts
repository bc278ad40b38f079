/** A scripted host, for tests of a plugin's functions. */

import type { Block, ResourceContents } from "./content.js";
import type { Context } from "./context.js";
import type { Evaluation, Finding, Prompt, Provider, Resource, Subject, Tool, Variables, Verdict } from "./index.js";
import type { Hook, HookContext } from "./hooks.js";
import type { Completion, CompletionRequest, ProviderAnswer, ProviderRequest } from "./model.js";
import type { Schema } from "./schema.js";
import type { ToolAnswer } from "./services.js";

type Awaitable<T> = T | Promise<T>;
type Scope = "session" | "project" | "user";
type Answer = Response | string | number | object;
type Form = Record<string, unknown> | "declined" | "cancelled";
type Page = "accepted" | "declined" | "cancelled";

/** What a host grants, and how it answers. What is not there is not granted. */
export interface HostScript {
  /** The plugin's settings. */
  settings?: Record<string, unknown>;
  /** Secrets by their names; `undefined` is granted and nobody has set it. */
  secrets?: Record<string, string | undefined>;
  /** The scopes of state that are granted, with what is in them if anything is. */
  state?: readonly Scope[] | { [S in Scope]?: Record<string, unknown> };
  /** What answers `fetch`: a function of the request, or answers by their URLs, which may end in `*` and begin with a method. */
  fetch?: ((request: Request) => Awaitable<Answer>) | Record<string, Answer | ((request: Request) => Awaitable<Answer>)>;
  /** What the user fills in, or does. */
  user?: Form | ((message: string, schema: Schema) => Awaitable<Form>);
  /** What the user makes of pages. */
  pages?: Page | ((message: string, url: string) => Awaitable<Page>);
  /** What models answer, by their names. */
  models?: Record<string, ProviderAnswer | ((request: ProviderRequest) => Awaitable<ProviderAnswer>)>;
  /** What tools answer, by their names. */
  tools?: Record<string, unknown>;
  /** The channels of messages that are granted, or a function that sends one. */
  messaging?: readonly string[] | ((message: { channel?: string; text: string; extra?: unknown }) => Awaitable<void>);
  /** What the host remembers, or a function that searches it. */
  memory?: readonly (string | { text: string; score?: number; source?: string })[] | ((query: string, limit: number) => Awaitable<readonly (string | { text: string; score?: number; source?: string })[]>);
  /** Who calls. */
  caller?: { agentId?: string; sessionId?: string; traceparent?: string; timeLeft?: number; extra?: Record<string, unknown> };
}

/** A host that does as it was told, and remembers what the plugin did. */
export declare class Host {
  constructor(script?: HostScript);
  readonly logged: { level: string; message: string; fields: Record<string, string> }[];
  readonly progress: { callId: string; progress: number; total: number | undefined; message: string | undefined }[];
  readonly messages: { channel: string | undefined; text: string; extra: unknown }[];
  readonly resourceUpdates: string[];
  readonly contributionChanges: number;
  readonly requests: Request[];
  readonly questions: ({ message: string; schema: Schema } | { message: string; url: string })[];

  /** Runs a function within the host. */
  run<T>(work: () => T): T;
  /** A context for a call of a handler as a function. */
  context(): Context;
  /**
   * Calls a tool as a host does, with arguments that go through JSON and its schema.
   *
   * @throws {TenonError} Where it fails; that it answers with `isError` is no failure.
   */
  callTool(tool: Tool<any, any>, args?: Record<string, unknown>): Promise<ToolAnswer>;
  /** Has a hook handle a point, with a context that goes through JSON. */
  handle<P>(hook: Hook<P>, context?: Partial<HookContext<P>>, point?: P): Promise<{ outcome: "continue" | "replace"; context: HookContext<P>; reason?: undefined } | { outcome: "veto"; reason: string; context?: undefined }>;
  /** Reads a resource of a definition. */
  readResource(resource: Resource<any>, uri: string): Promise<ResourceContents[]>;
  /** What a definition has in the list of resources. */
  listResources(resource: Resource<any>): Promise<{ uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number }[]>;
  /** Fills a prompt in. */
  getPrompt(prompt: Prompt<any>, args?: Record<string, string>): Promise<{ description: string; messages: { role: "user" | "assistant"; content: Block }[] }>;
  /** The values that a prompt or resource suggests for an argument of which this was typed. */
  completeArgument(of: Prompt<any> | Resource<any>, name: string, typed?: string, others?: Record<string, string>): Promise<string[]>;
  /** Has a strategy judge a subject. */
  evaluate(evaluation: Evaluation<any>, subject: Subject, options?: Record<string, unknown>): Promise<{ score: number; verdict: Verdict; findings: Finding[] }>;
  /** Has a provider complete a request, or a prompt. */
  complete(provider: Provider, request: string | CompletionRequest): Promise<Completion>;
  /** The state of a scope as the plugin has left it; of the narrowest that is granted, unless it is named. */
  state(scope?: Scope): Record<string, any>;
}
