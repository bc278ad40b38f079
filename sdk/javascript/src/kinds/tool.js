/** Tools: functions that a model or a program calls by name with JSON. */

import { callerOf } from "../location.js";
import * as field from "../fields.js";
import { checkFields, register } from "../registry.js";
import { anySchema, objectSchema } from "../schema.js";
import { broken, callable, extra, named, schemaOf } from "./definition.js";

const anything = { check: () => undefined };

const FIELDS = {
  name: field.name,
  title: field.text,
  description: field.description,
  input: anything,
  output: anything,
  readOnly: field.flag,
  destructive: field.flag,
  idempotent: field.flag,
  openWorld: field.flag,
  capabilities: field.strings,
  meta: field.json,
  handler: field.handler,
};

/**
 * Defines a tool. What it returns is the handler as a function, which tests call.
 *
 * The handler gets the arguments, which match `input`, and the context of the call. What it returns becomes the answer:
 * a string or a number is text; an object is structured content, and the same as JSON; `text`, `image`, `audio`,
 * `resourceLink` and `embedded` make content, and an array has several; `undefined` is an empty answer. A `ToolError`
 * tells the model what is wrong.
 *
 * @param {object} definition See the type `ToolDefinition`.
 */
export function tool(definition) {
  const location = callerOf(tool);
  const what = named("tool", definition?.name);
  if (!checkFields(definition, FIELDS, { what, location })) return broken(what);
  const input = schemaOf("input", () => objectSchema(definition.input), { what, location });
  const output = definition.output === undefined ? {} : schemaOf("output", () => anySchema(definition.output), { what, location });
  if (!input || !output) return broken(what);
  const { name, title = null, description, readOnly, destructive, idempotent, openWorld } = definition;
  const entry = {
    key: name,
    what,
    location,
    input: input.schema,
    standard: input.standard,
    output: output.schema,
    handler: (args, context) => definition.handler(args, context),
    record: () => ({
      name,
      title,
      description,
      inputSchema: JSON.stringify(input.schema),
      outputSchema: output.schema ? JSON.stringify(output.schema) : null,
      annotations: {
        readOnly: readOnly ?? null,
        destructive: destructive ?? null,
        idempotent: idempotent ?? null,
        openWorld: openWorld ?? null,
      },
      capabilities: definition.capabilities ?? [],
      extra: extra(definition.meta),
    }),
  };
  register("tools", entry, what);
  return callable(name, entry, entry.handler);
}
