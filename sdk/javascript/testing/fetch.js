/** The requests of a test. */

import { TenonError } from "../src/errors.js";

/**
 * What answers requests.
 *
 * @param {Function | Record<string, unknown> | undefined} script A function of the request, or answers by their URLs,
 *   which may end in `*`. An answer is a `Response`, a string, an object for JSON, or a status.
 */
export function fetchOf(script, host) {
  return async (input, init) => {
    const request = new Request(input, init);
    if (script === undefined) {
      const origin = new URL(request.url).origin;
      throw new TypeError(`fetch failed: ${request.url} is not granted`, {
        cause: new TenonError("denied", `\`network\` is not granted; plugin.toml requests it with \`network = ["${origin}/*"]\` under [capabilities]`),
      });
    }
    host.requests.push(request.clone());
    request.signal?.throwIfAborted();
    const answer = typeof script === "function" ? await script(request) : find(script, request);
    return toResponse(answer, request);
  };
}

function find(answers, { method, url }) {
  for (const [pattern, answer] of Object.entries(answers)) {
    const [, of, text] = pattern.match(/^(?:([A-Z]+) )?(.*)$/);
    const fits = text.endsWith("*") ? url.startsWith(text.slice(0, -1)) : url === text || url === new URL(text).href;
    if (fits && (of === undefined || of === method)) return answer;
  }
  throw new TypeError(`the test has no answer to ${method} ${url}: it has answers to ${Object.keys(answers).join(", ") || "nothing"}`);
}

async function toResponse(answer, request) {
  if (typeof answer === "function") return toResponse(await answer(request), request);
  if (answer instanceof Response) return answer.bodyUsed ? answer : answer.clone();
  if (typeof answer === "number") return new Response(null, { status: answer });
  if (typeof answer === "string") return new Response(answer);
  if (answer === undefined) throw new TypeError(`the test answers ${request.method} ${request.url} with nothing`);
  return Response.json(answer);
}
