import type { Block, Content } from "./content.js";
import type { Schema } from "./schema.js";

/** A piece of a message. */
export type Part =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: Uint8Array; mimeType: string }
  /** The model's reasoning. Providers that sign it need it back unchanged. */
  | { type: "reasoning"; text: string; signature?: string }
  /** The model asks for a tool. */
  | { type: "tool-call"; id: string; name: string; arguments: any }
  /** What the tool answered. */
  | { type: "tool-call-result"; id: string; content: Block[]; isError: boolean }
  /** A part of a kind of the provider's own. */
  | { type: "other"; value: unknown };

/** A piece of a message as it is written. */
export type PartInput = string | Exclude<Part, { type: "tool-call-result" }> | { type: "tool-call-result"; id: string; content: string | Content | readonly (string | Content)[]; isError?: boolean };

export type Role = "system" | "user" | "assistant" | "tool";

/** One turn of a conversation as it is written. */
export interface MessageInput {
  role?: Role;
  content?: PartInput | readonly PartInput[];
  parts?: readonly PartInput[];
}

export interface ModelTool {
  name: string;
  description: string;
  inputSchema?: Schema;
}

export type ToolChoice = "auto" | "none" | "required" | { name: string };

export interface Sampling {
  /** The most tokens of the answer. */
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  /** Texts at which the model stops. */
  stopSequences?: string[];
  /** Makes the answer repeatable where the provider can. */
  seed?: number;
}

/** What a model is asked. */
export interface CompletionRequest extends Sampling {
  /** `default`, which the host chooses, unless it says otherwise. */
  model?: string;
  /** The host's instructions. */
  system?: string;
  /** What the user says last. */
  prompt?: PartInput | readonly PartInput[];
  /** The conversation, oldest first. */
  messages?: readonly (string | MessageInput)[];
  tools?: readonly ModelTool[];
  toolChoice?: ToolChoice;
  /** The JSON Schema that the answer must match. */
  responseSchema?: Schema;
  /** Settings of the provider's own. */
  extra?: Record<string, unknown>;
}

/** Tokens, as the provider counts them. */
export interface TokenUsage {
  input: number;
  output: number;
  cachedInput: number;
  reasoning: number;
}

export type StopReason = "end-turn" | "max-tokens" | "stop-sequence" | "tool-use" | "refusal" | (string & {});

/** What a model answered. */
export interface Completion {
  /** The texts of the parts. */
  text: string;
  parts: Part[];
  model: string;
  stopReason: StopReason;
  usage: TokenUsage;
  extra?: Record<string, unknown>;
}

/** What a provider is asked. */
export interface ProviderRequest extends Sampling {
  model: string;
  messages: { role: Role; parts: Part[]; text: string }[];
  tools: { name: string; description: string; inputSchema: Schema }[];
  toolChoice: ToolChoice;
  responseSchema?: Schema;
  extra?: Record<string, unknown>;
}

/** How an answer ended, and what it took. */
export interface Summary {
  model?: string;
  stopReason?: StopReason;
  usage?: Partial<TokenUsage>;
  extra?: Record<string, unknown>;
}

/** What a provider answers. */
export type ProviderAnswer = string | readonly PartInput[] | (Summary & { text?: string; parts?: readonly PartInput[] });

/** A piece of an answer in the making; a string is more text. */
export type Delta =
  | string
  | { type: "text" | "reasoning"; text: string }
  | { type: "tool-call-start"; index: number; id: string; name: string }
  | { type: "tool-call-arguments"; index: number; fragment: string };

/** A model that a provider offers. */
export interface Model {
  /** The name by which requests choose it. */
  id: string;
  title?: string;
  /** The tokens that it takes into account, input and output together. */
  contextWindow?: number;
  maxOutputTokens?: number;
  features?: readonly ("tools" | "images" | "audio" | "responseSchema")[];
}
