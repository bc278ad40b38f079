import type { Block } from "./content.js";
import type { Completion, CompletionRequest } from "./model.js";
import type { InferObject, ObjectSchema, Properties, Schema } from "./schema.js";

/** The plugin's settings. */
export declare namespace config {
  /** A setting, or `otherwise` where nobody has set it. */
  function get<T = unknown>(key: string): T | undefined;
  function get<T>(key: string, otherwise: T): T;
  /** All settings. */
  function all(): Record<string, unknown>;
}

/** The host's log, under the plugin's name. Fields are for machines. */
export declare namespace log {
  function trace(message: string, fields?: Record<string, unknown>): void;
  function debug(message: string, fields?: Record<string, unknown>): void;
  function info(message: string, fields?: Record<string, unknown>): void;
  function warn(message: string, fields?: Record<string, unknown>): void;
  function error(message: string, fields?: Record<string, unknown>): void;
}

/** News from the plugin. */
export declare namespace notify {
  /** Says that the resource of this URI has changed. */
  function resourceUpdated(uri: string): void;
  /** Says that the plugin contributes something else now. */
  function contributionsChanged(): void;
}

/** Secrets that the user keeps for the plugin. The manifest asks for them with `secrets = ["api-key"]`. */
export declare namespace secrets {
  /**
   * The value of a secret. The host masks it wherever it shows what the plugin says.
   *
   * @throws {TenonError} `denied` for one that is not granted, `not-found` for one that nobody has set.
   */
  function get(name: string): string;
}

/** The state of a scope. Its functions throw a `TenonError`: `denied` where it is not granted, `failed` where it is full. */
export interface Bucket {
  /** The value of a key, or `otherwise` if it has none. */
  get<T = unknown>(key: string): T | undefined;
  get<T>(key: string, otherwise: T): T;
  /** Sets the value of a key, which is written as JSON. It is on the disk when this returns. */
  set(key: string, value: unknown): void;
  /**
   * Sets the value of a key to what a function makes of it, and returns that. Where another call has changed the value
   * meanwhile, the function is called again with the new one.
   */
  update<T>(key: string, change: (value: T | undefined) => T): T;
  /** Adds to a whole number, which is 0 where it has no value, and returns the sum. */
  increment(key: string, by?: number): number;
  /** Whether a key has a value. */
  has(key: string): boolean;
  /** Removes a key. One that is not there is no error. */
  delete(key: string): void;
  /** The keys, in the order of their bytes. */
  keys(): string[];
  getBytes(key: string): Uint8Array | undefined;
  setBytes(key: string, bytes: Uint8Array): void;
}

/** What the plugin keeps between calls, of the scope that is granted. The manifest asks for it with `state = ["project"]`. */
export declare const state: Bucket & {
  /** The state of one of several scopes. */
  bucket(scope: "session" | "project" | "user"): Bucket;
};

/** Questions to the user. The manifest asks for them with `user = ["ask"]`, and for pages with `"ask-url"`. */
export declare namespace user {
  type Answer<T> = { answer: "accepted"; content: T } | { answer: "declined"; content?: undefined } | { answer: "cancelled"; content?: undefined };

  /**
   * Has the user fill in a form of texts, numbers, truth values and choices.
   *
   * @throws {TenonError} `denied` where it is not granted or there is no user, `invalid-input` where the fields are no form.
   */
  function ask<const F extends Properties | ObjectSchema>(message: string, fields: F): Promise<Answer<InferObject<F>>>;

  /** Asks the user to open a page. That it was opened does not mean that anything was done there. */
  function askUrl(message: string, url: string | URL, options?: { id?: string }): Promise<"accepted" | "declined" | "cancelled">;
}

/** Language models of the host. The manifest names them with `providers = ["default"]`. */
export declare namespace inference {
  /**
   * Has a model complete a request, or a prompt.
   *
   * @throws {TenonError} `denied` for a model that is not granted, and what the provider answers.
   */
  function complete(request: string | CompletionRequest): Promise<Completion>;
}

/** The answer of another tool. */
export interface ToolAnswer {
  /** The texts of the content. */
  text: string;
  content: Block[];
  structured: unknown;
  /** The tool could not do what was asked; the text says why. */
  isError: boolean;
}

/** The host's other tools. The manifest names them with `tools = ["text_tools__*"]`. */
export declare namespace tools {
  /** The tools that the plugin may call, under the names that it calls them by. */
  function list(): Promise<{ name: string; title?: string; description: string; inputSchema: Schema; outputSchema?: Schema }[]>;
  /**
   * Calls a tool. That the tool could not do it is no error, but an answer with `isError`.
   *
   * @throws {TenonError} `denied` for a tool that is not granted, and what the tool fails with.
   */
  function call(name: string, args?: Record<string, unknown>): Promise<ToolAnswer>;
}

/** Messages that the host sends. The manifest names channels with `messaging = ["ops"]`. */
export declare namespace messaging {
  /** Sends a message; without a channel it is for the user at hand. */
  function send(message: string | { text: string; channel?: string; extra?: Record<string, unknown> }): Promise<void>;
}

/** What the host remembers. The manifest asks for it with `memory = ["search"]`. */
export declare namespace memory {
  /** Searches the host's memory, best match first. Without a limit it finds at most 10. Scores are from 0 to 1. */
  function search(query: string, options?: { limit?: number }): Promise<{ text: string; score: number; source?: string }[]>;
}
