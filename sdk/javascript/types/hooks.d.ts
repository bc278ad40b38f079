import type { Context } from "./context.js";

/** The contexts of the points of a host's work. Hosts may add members, and leave out those that they do not know. */
export interface HookContexts {
  /** A goal is about to be planned. */
  "before-plan": { goal?: string };
  /** There is a plan. */
  "after-plan": { goal?: string; plan?: unknown[] };
  /** A step is about to run. */
  "before-execute": { step?: unknown };
  /** A step has run. */
  "after-execute": { step?: unknown; result?: unknown };
  /** An output is about to be scored. */
  "before-evaluate": { subject?: Record<string, unknown> };
  /** An output was scored. */
  "after-evaluate": { subject?: Record<string, unknown>; evaluation?: Record<string, unknown> };
  /** The host keeps something that it has learnt. */
  "on-learning": { learning?: unknown };
  /** The host has noticed a pattern. */
  "on-pattern": { pattern?: unknown };
  /** A message has come in and is about to be acted on. */
  "message-received": { message?: string; channel?: string; sender?: string };
  /** A message is about to go out. */
  "message-sending": { message?: string; channel?: string; recipient?: string };
  /** A language model is about to be asked. Handlers may change the request, but for its model. */
  "before-completion": { model?: string; plugin?: string; request?: Record<string, any> };
  /** A language model has answered. Handlers may change the parts of the answer. */
  "after-completion": { model?: string; plugin?: string; request?: Record<string, any>; completion?: Record<string, any> };
  /** A tool is about to be called. Handlers may change the arguments. */
  "before-tool-call": { tool: string; plugin?: string; arguments: Record<string, any> };
  /** A tool has answered. Handlers may change the result. */
  "after-tool-call": { tool: string; plugin?: string; arguments: Record<string, any>; result: Record<string, any> };
}

/** A point of a host's work, or one of a host's own with a prefix. */
export type HookPoint = keyof HookContexts | `${string}:${string}`;

/** The context of a point. */
export type HookContext<P> = P extends keyof HookContexts ? HookContexts[P] & { [member: string]: unknown } : Record<string, any>;

/** A decision to stop what was about to happen, made by `veto`. */
export declare class Veto {
  private constructor();
  readonly reason: string;
}

/** Stops what was about to happen, when a hook returns it. The reason is for people. */
export declare function veto(reason: string): Veto;

/** What a handler decides: a veto, another context, or nothing. What it changes in the context counts as well. */
export type HookResult<P> = HookContext<P> | Veto | undefined | void | null;

export interface HookOptions {
  /** Handlers of a greater priority run earlier; the usual one is 0. */
  priority?: number;
  /** The host records the outcome and does not honour it. */
  audit?: boolean;
}

export type HookHandler<P> = (context: HookContext<P>, call: Context, point: P) => HookResult<P> | Promise<HookResult<P>>;

/** A hook as a function, which tests call. */
export interface Hook<P> {
  (context: HookContext<P>, call?: Context): HookResult<P> | Promise<HookResult<P>>;
}

/**
 * Defines a handler of one or several points. It gets the context of the point, and may change it in place, return
 * another one in its place, return `veto("why")`, or return nothing to let it pass.
 */
export declare function hook<P extends HookPoint>(point: P | readonly P[], handler: HookHandler<P>): Hook<P>;
export declare function hook<P extends HookPoint>(point: P | readonly P[], options: HookOptions, handler: HookHandler<P>): Hook<P>;
