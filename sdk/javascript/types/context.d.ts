/** The call at hand: the second argument of handlers. */
export interface Context {
  /** Names this call among all calls of the host. */
  readonly callId: string;
  /** The agent on whose behalf the call is made, where there is one. */
  readonly agentId: string | undefined;
  /** The conversation or session that the call belongs to, where there is one. */
  readonly sessionId: string | undefined;
  /** The W3C Trace Context `traceparent` to pass on with requests. */
  readonly traceparent: string | undefined;
  /** How many milliseconds were left when the call was handed over, where it has a deadline. */
  readonly timeLeft: number | undefined;
  /** What else the host says of the call. */
  readonly extra: Record<string, unknown>;
  /** Whether the host asked for the call to end. */
  readonly isCancelled: boolean;
  /** Aborts when the host asks for the call to end: pass it to `fetch`. */
  readonly signal: AbortSignal;
  /** Tells whoever waits how far the call has come. `progress` grows with each report, and reaches `total` at the end. */
  progress(progress: number, total?: number, message?: string): void;
  /** Throws a `TenonError` if the host asked for the call to end: for loops that compute for long. */
  throwIfCancelled(): void;
}
