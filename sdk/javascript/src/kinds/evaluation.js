/** Evaluations: strategies that score what an agent or a model has produced. */

import { callerOf } from "../location.js";
import * as field from "../fields.js";
import { checkFields, kindOf, register } from "../registry.js";
import { objectSchema } from "../schema.js";
import { broken, callable, extra, named, schemaOf } from "./definition.js";

const FIELDS = {
  name: field.name,
  description: field.description,
  options: { check: () => undefined },
  handler: field.handler,
};

/**
 * Defines a strategy. The handler gets the subject, whose `output` is judged, the options, and the context of the call.
 * It returns a score from 0 (worst) to 1 (best), `true` or `false`, findings (see `finding`), or a whole evaluation.
 *
 * @param {object} definition See the type `EvaluationDefinition`.
 */
export function evaluation(definition) {
  const location = callerOf(evaluation);
  const what = named("evaluation", definition?.name);
  if (!checkFields(definition, FIELDS, { what, location })) return broken(what);
  const options = schemaOf("options", () => objectSchema(definition.options), { what, location });
  if (!options) return broken(what);
  const { name, description } = definition;
  const entry = {
    key: name,
    what,
    location,
    options: options.schema,
    handler: (subject, given, context) => definition.handler(subject, given, context),
    record: () => ({
      name,
      description,
      optionsSchema: definition.options === undefined ? null : JSON.stringify(options.schema),
    }),
  };
  register("evaluations", entry, what);
  const call = callable(name, entry, () => undefined);
  // A strategy has two arguments before its context.
  return Object.defineProperties((subject, given = {}, context) => entry.handler(subject, given, context), Object.getOwnPropertyDescriptors(call));
}

/**
 * What one criterion found.
 *
 * @param {string} criterion
 * @param {boolean | number} passed Whether it passed, or a score from 0 to 1, where 1 passes.
 * @param {string} reason Why, for people.
 */
export function finding(criterion, passed, reason) {
  const isScore = typeof passed === "number";
  return { criterion, verdict: (isScore ? passed >= 1 : passed) ? "pass" : "fail", score: isScore ? passed : undefined, reason };
}

/** What a handler returned, as the contract's record. */
export function toEvaluation(value) {
  if (typeof value === "boolean") return whole({ score: value ? 1 : 0 });
  if (typeof value === "number") return whole({ score: value });
  if (Array.isArray(value)) return whole({ findings: value });
  if (value !== null && typeof value === "object") return whole(value);
  throw new TypeError(`the strategy returned ${kindOf(value)}: return a score from 0 to 1, \`true\` or \`false\`, findings, or an evaluation`);
}

const VERDICTS = ["pass", "fail", "inconclusive"];

function whole({ score, verdict, findings = [], reason, extra: more, ...unknown }) {
  const [strange] = Object.keys(unknown);
  if (strange) throw new TypeError(`an evaluation has no \`${strange}\`: it has \`score\`, \`verdict\`, \`findings\`, \`reason\` and \`extra\``);
  const found = findings.map(toFinding);
  const passed = found.filter((each) => each.verdict === "pass").length;
  const share = found.length === 0 ? 0 : passed / found.length;
  const total = score ?? share;
  if (typeof total !== "number" || !(total >= 0 && total <= 1)) throw new TypeError(`the score is ${JSON.stringify(total)} and has to be a number from 0 to 1`);
  const implied = score === undefined && found.length === 0 ? "inconclusive" : total === 1 ? "pass" : "fail";
  const final = verdict ?? implied;
  if (!VERDICTS.includes(final)) throw new TypeError(`the verdict is ${JSON.stringify(final)} and has to be one of ${VERDICTS.join(", ")}`);
  if (reason !== undefined) found.push({ criterion: "score", verdict: final, score: total, reason: String(reason) });
  return { score: total, verdict: final, findings: found, extra: extra(more) };
}

function toFinding({ criterion, verdict, score, reason }) {
  if (!VERDICTS.includes(verdict)) throw new TypeError(`a finding's verdict is ${JSON.stringify(verdict)} and has to be one of ${VERDICTS.join(", ")}; \`finding(criterion, passed, reason)\` makes one`);
  return { criterion: String(criterion), verdict, score: score ?? null, reason: String(reason ?? "") };
}
