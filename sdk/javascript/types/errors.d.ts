/** The codes of the contract's errors. */
export type ErrorCode = "invalid-input" | "not-found" | "denied" | "timeout" | "cancelled" | "unavailable" | "failed";

/**
 * What a tool throws when it could not do what was asked, and the model may do better on the next try. It becomes a
 * result with `isError`, whose text is the message.
 */
export declare class ToolError extends Error {
  constructor(message: string, options?: { structured?: object; cause?: unknown });
  readonly structured: object | undefined;
}

/** An error of the contract: what the caller cannot mend by calling in another way. Functions of the host throw it as well. */
export declare class TenonError extends Error {
  constructor(code: ErrorCode, message: string, options?: { retryAfter?: number; data?: unknown; cause?: unknown });
  readonly code: ErrorCode;
  /** How many milliseconds to wait before another attempt, where that is known. */
  readonly retryAfter: number | undefined;
  /** What programs can read about it. */
  readonly data: unknown;
}
