/** Providers of language models. */

import { callerOf } from "../location.js";
import * as field from "../fields.js";
import { joined, toCompletion, toDelta, toSummary } from "../model.js";
import { suggestion } from "../nearest.js";
import { checkFields, kindOf, register, report } from "../registry.js";
import { broken, callable, named } from "./definition.js";

const FIELDS = {
  name: field.name,
  description: field.description,
  models: {
    required: true,
    check: (value) => (typeof value === "function" || Array.isArray(value) ? undefined : `it is ${kindOf(value)} and has to be an array of models, or a function that returns one`),
    hint: 'write `models: [{ id: "parrot" }]`',
  },
  complete: field.optionalFunction,
  stream: field.optionalFunction,
};

/**
 * Defines a provider of language models.
 *
 * `complete(request, context)` answers in one piece: with a string, parts, or `{ text | parts, stopReason, usage }`.
 * `stream(request, context)` is an async generator that yields pieces of the answer, strings or deltas, and returns
 * `{ stopReason, usage }`. One of the two is enough.
 *
 * @param {object} definition See the type `ProviderDefinition`.
 */
export function provider(definition) {
  const location = callerOf(provider);
  const what = named("provider", definition?.name);
  if (!checkFields(definition, FIELDS, { what, location })) return broken(what);
  if (!definition.complete && !definition.stream) {
    report({ what, field: "complete", problem: "it is missing", hint: "write `complete(request, context) { … }`, or `async *stream(request, context) { … }`", location });
    return broken(what);
  }
  const { name, description } = definition;
  const entry = {
    key: name,
    what,
    location,
    streams: definition.stream !== undefined,
    models: async () => (typeof definition.models === "function" ? definition.models() : definition.models),
    stream: (request, context) => definition.stream(request, context),
    complete: async (request, context) => complete(definition, request, context),
    record: () => ({ name, description }),
  };
  register("providers", entry, what);
  return callable(name, entry, async (request, context) => toAnswer(await entry.complete(request, context), request.model));
}

/** What `complete` of an entry answered, as the contract's record. */
export function toAnswer(value, model) {
  return value?.summary ? value : toCompletion(value, model);
}

/** Answers in one piece: with what the author wrote, or with the record that is made of a stream. */
async function complete(definition, request, context) {
  if (definition.complete) return definition.complete(request, context);
  const stream = definition.stream(request, context);
  const deltas = [];
  for (;;) {
    const { done, value } = await stream.next();
    if (done) return { parts: joined(deltas), summary: toSummary(value, request.model) };
    deltas.push(toDelta(value));
  }
}

const FEATURES = { tools: "tools", images: "images", audio: "audio", responseSchema: "responseSchema", "response-schema": "responseSchema" };

/** A model as the contract's record. */
export function toModel(model, provider) {
  const { id, title, contextWindow, maxOutputTokens, features = [] } = typeof model === "string" ? { id: model } : model;
  const flags = {};
  for (const feature of features) {
    if (!Object.hasOwn(FEATURES, feature)) throw new TypeError(`the model ${JSON.stringify(id)} has the feature ${JSON.stringify(feature)}: ${suggestion(feature, Object.keys(FEATURES))}`);
    flags[FEATURES[feature]] = true;
  }
  return { id, provider, title: title ?? null, contextWindow: contextWindow ?? null, maxOutputTokens: maxOutputTokens ?? null, features: flags };
}
