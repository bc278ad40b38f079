/** How a plugin says that something failed. */

/** The codes of the contract's errors. */
export const ERROR_CODES = [
  "invalid-input",
  "not-found",
  "denied",
  "timeout",
  "cancelled",
  "unavailable",
  "failed",
];

/**
 * What a tool throws when it could not do what was asked, and the model may do better on the next
 * try. It becomes a result with `isError`, whose text is the message.
 */
export class ToolError extends Error {
  /**
   * @param {string} message What is wrong and what to do instead, for the model.
   * @param {{ structured?: object, cause?: unknown }} [options] `structured` is the structured
   *   content of the result.
   */
  constructor(message, { structured, ...options } = {}) {
    super(message, options);
    this.name = "ToolError";
    this.structured = structured;
  }
}

/**
 * An error of the contract: what the caller cannot mend by calling in another way. Functions of the
 * host throw it as well.
 */
export class TenonError extends Error {
  /**
   * @param {string} code One of `ERROR_CODES`.
   * @param {string} message What is wrong, for people.
   * @param {{ retryAfter?: number, data?: unknown, cause?: unknown }} [options] `retryAfter` says how
   *   many milliseconds to wait before another attempt, where that is known; `data` is what programs
   *   can read about it, as JSON.
   */
  constructor(code, message, { retryAfter, data, ...options } = {}) {
    super(message, options);
    if (!ERROR_CODES.includes(code)) {
      throw new TypeError(`${JSON.stringify(code)} is no error code; the codes are ${ERROR_CODES.join(", ")}`);
    }
    this.name = "TenonError";
    this.code = code;
    this.retryAfter = retryAfter;
    this.data = data;
  }
}

/** A definition of a plugin that is not as it should be. */
export class DefinitionError extends TypeError {
  /**
   * @param {{ what: string, field?: string, within?: string[], problem: string, hint?: string, location?: string, isMissing?: boolean }} details
   *   `within` are names that lead to the problem from the field on, and `isMissing` says that the field is not there.
   */
  constructor({ what, field, within, problem, hint, location, isMissing = false }) {
    const where = location ? `${location}: ` : "";
    const of = field ? `${what}, field \`${field}\`` : what;
    super(`${where}${of}: ${problem}${hint ? `\n  hint: ${hint}` : ""}`);
    this.name = "DefinitionError";
    this.details = { what, field, within, problem, hint, location, isMissing };
  }
}

/** An error of the contract as its record: what an export of a component throws. */
export function toRecord(error) {
  return {
    code: error.code,
    message: error.message,
    retryAfter: error.retryAfter === undefined ? null : Math.max(0, Math.round(error.retryAfter)),
    data: error.data === undefined ? null : JSON.stringify(error.data),
  };
}

/** The error that a function of the host has thrown, as a `TenonError` if it is one of the contract. */
export function ofHost(thrown) {
  const record = thrown?.payload;
  if (typeof record?.code !== "string" || typeof record.message !== "string") return thrown;
  return new TenonError(record.code, record.message, {
    retryAfter: record.retryAfter ?? undefined,
    data: record.data == null ? undefined : JSON.parse(record.data),
  });
}
