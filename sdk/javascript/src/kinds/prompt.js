/** Prompts: messages prepared by a plugin for a user to choose. */

import { asContent, toBlock } from "../content.js";
import { callerOf } from "../location.js";
import * as field from "../fields.js";
import { checkFields, kindOf, register } from "../registry.js";
import { completer } from "../suggestions.js";
import { broken, callable, extra, named } from "./definition.js";

const FIELDS = {
  name: field.name,
  title: field.text,
  description: field.description,
  arguments: { ...field.json, hint: 'write `{ topic: { description: "…" } }`' },
  meta: field.json,
  handler: field.handler,
};

const ARGUMENT = {
  title: field.text,
  description: field.text,
  optional: field.flag,
  complete: completer,
  meta: field.json,
};

/**
 * Defines a prompt. The handler gets the arguments, which are texts, and the context. It returns what is said: a
 * string or content is a message of the user; an array has several messages, each of them a string, content, or
 * `{ role: "assistant", content }`.
 *
 * @param {object} definition See the type `PromptDefinition`.
 */
export function prompt(definition) {
  const location = callerOf(prompt);
  const what = named("prompt", definition?.name);
  if (!checkFields(definition, FIELDS, { what, location })) return broken(what);
  const args = Object.entries(definition.arguments ?? {});
  for (const [name, argument] of args) {
    if (!checkFields(argument, ARGUMENT, { what: `${what}, argument \`${name}\``, location })) return broken(what);
  }
  const { name, title = null, description } = definition;
  const entry = {
    key: name,
    what,
    location,
    description,
    arguments: Object.fromEntries(args),
    completes: args.some(([, { complete }]) => complete !== undefined),
    handler: (given, context) => definition.handler(given, context),
    record: () => ({
      name,
      title,
      description,
      arguments: args.map(([of, about]) => ({
        name: of,
        title: about.title ?? null,
        description: about.description ?? null,
        required: !about.optional,
        extra: extra(about.meta),
      })),
      extra: extra(definition.meta),
    }),
  };
  register("prompts", entry, what);
  return callable(name, entry, entry.handler);
}

/** What a handler returned, as the contract's record. */
export function toPrompt(value, description) {
  const isWhole = value !== null && typeof value === "object" && Array.isArray(value.messages);
  const messages = isWhole ? value.messages : [value].flat();
  return {
    description: (isWhole && value.description) || description,
    messages: messages.map(toMessage),
    extra: isWhole ? extra(value.meta) : null,
  };
}

function toMessage(value, index) {
  const said = asContent(value);
  if (said) return { role: "user", content: toBlock(said), extra: null };
  const content = asContent(value?.content);
  if (!content) {
    throw new TypeError(`message ${index} of the prompt is ${kindOf(value)} and has to be a string, content, or \`{ role, content }\``);
  }
  const { role = "user" } = value;
  if (role !== "user" && role !== "assistant") throw new TypeError(`the role of message ${index} is ${JSON.stringify(role)} and has to be "user" or "assistant"`);
  return { role, content: toBlock(content), extra: null };
}
