/** What TypeScript knows of a plugin. `@ts-expect-error` marks what it has to refuse. */

import { z } from "zod";
import { config, evaluation, finding, hook, inference, prompt, provider, resource, state, text, tool, ToolError, TenonError, tools, user, veto } from "@tenon/sdk";
import { Host } from "@tenon/sdk/testing";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <T extends true>(): T | undefined => undefined;

export const forecast = tool({
  name: "forecast",
  description: "Says how the weather will be.",
  input: {
    place: { type: "string", description: "Where." },
    days: { type: "integer", default: 1 },
    unit: { type: "string", enum: ["celsius", "fahrenheit"], optional: true },
    tags: { type: "array", items: { type: "string" } },
    at: { type: "object", properties: { x: { type: "number" }, y: { type: ["number", "null"] } } },
  },
  handler({ place, days, unit, tags, at }, context) {
    is<Equal<typeof place, string>>();
    is<Equal<typeof days, number>>();
    is<Equal<typeof unit, "celsius" | "fahrenheit" | undefined>>();
    is<Equal<typeof tags, string[]>>();
    is<Equal<typeof at.y, number | null>>();
    context.progress(1, 2);
    if (context.signal.aborted) throw new ToolError("late");
    // @ts-expect-error There is no such argument.
    ((args: { other: string }) => args.other)({ place });
    return `${place} ${days}`;
  },
});

// Arguments with a default may be left out, and others may not.
forecast({ place: "Graz", tags: [], at: { x: 1, y: null } });
// @ts-expect-error `place` is missing.
forecast({ tags: [], at: { x: 1, y: null } });
// @ts-expect-error The unit is none of the two.
forecast({ place: "Graz", unit: "kelvin", tags: [], at: { x: 1, y: null } });

export const whole = tool({
  name: "whole",
  description: "Takes a whole schema.",
  input: { type: "object", properties: { a: { type: "string" }, b: { type: "boolean" } }, required: ["a"] },
  output: { sum: { type: "number" } },
  handler({ a, b }) {
    is<Equal<typeof a, string>>();
    is<Equal<typeof b, boolean | undefined>>();
    return { sum: 1 };
  },
});

tool({
  name: "wrong",
  description: "Returns something else than it says.",
  output: { sum: { type: "number" } },
  // @ts-expect-error The sum is a text.
  handler: () => ({ sum: "1" }),
});

export const zod = tool({
  name: "zod",
  description: "Takes a schema of a library.",
  input: z.object({ when: z.string().transform((day) => new Date(day)), n: z.number().optional() }),
  handler({ when, n }) {
    is<Equal<typeof when, Date>>();
    is<Equal<typeof n, number | undefined>>();
    return text(when.toISOString());
  },
});

export const bare = tool({ name: "bare", description: "Takes nothing.", handler: () => undefined });
bare({});

// @ts-expect-error The description is missing.
tool({ name: "x", handler: () => "x" });
// @ts-expect-error There is no such type.
tool({ name: "x", description: "x", input: { a: { type: "text" } }, handler: () => "x" });

export const guard = hook("before-tool-call", { priority: 10 }, (context) => {
  is<Equal<typeof context.tool, string>>();
  if (context.arguments.path.startsWith("/")) return veto("no");
  return { ...context, arguments: {} };
});
hook(["before-plan", "acme:deploy"], async () => {});
// @ts-expect-error There is no such point.
hook("before-toolcall", () => {});

export const note = resource("notes://{folder}/{name}{?year,tag*}", {
  description: "A note.",
  list: () => [{ variables: { folder: "a", name: "b" } }],
  complete: { name: ["a"], tag: (typed, others) => [typed, others.folder ?? ""] },
  handler({ folder, name, year, tag }) {
    is<Equal<typeof folder, string>>();
    is<Equal<typeof year, string | undefined>>();
    is<Equal<typeof tag, string[] | undefined>>();
    if (name === "") throw new TenonError("not-found", "there is none");
    return `${folder} ${name}`;
  },
});
// @ts-expect-error There is no such variable.
resource("notes://{name}", { description: "x", handler: ({ nam }) => nam });
// @ts-expect-error There is no such code.
new TenonError("missing", "x");

export const explain = prompt({
  name: "explain",
  description: "Explains.",
  arguments: { topic: {}, tone: { optional: true } },
  handler({ topic, tone }) {
    is<Equal<typeof topic, string>>();
    is<Equal<typeof tone, string | undefined>>();
    return [topic, { role: "assistant", content: text("x") }];
  },
});

export const concise = evaluation({
  name: "concise",
  description: "Passes when it is short.",
  options: { most: { type: "integer", default: 10 } },
  handler(subject, { most }) {
    is<Equal<typeof most, number>>();
    return [finding("words", String(subject.output).length <= most, "it is so long")];
  },
});
concise({ output: "x" });

export const parrot = provider({
  name: "birds",
  description: "Birds.",
  models: [{ id: "parrot", features: ["tools"] }],
  async *stream({ messages }) {
    yield messages[0]?.text ?? "";
    return { stopReason: "end-turn", usage: { output: 1 } };
  },
});

export async function services() {
  const answer = await user.ask("Where?", { city: { type: "string" }, nights: { type: "integer", optional: true } });
  if (answer.answer === "accepted") is<Equal<typeof answer.content.city, string>>();
  is<Equal<number, ReturnType<typeof state.increment>>>();
  const tasks = state.update<string[]>("tasks", (all = []) => [...all, "x"]);
  const { text: said } = await inference.complete({ prompt: "Hi", maxTokens: 10 });
  const { structured } = await tools.call("a__b", { n: 1 });
  return [tasks, said, structured, config.get("unit", "K")];
}

export async function tested() {
  const host = new Host({ settings: { unit: "K" }, state: ["project"], fetch: { "https://a.b/*": { ok: true } }, models: { default: "Hi" } });
  const { text: said, isError } = await host.callTool(forecast, { place: "Graz" });
  const outcome = await host.handle(guard, { tool: "x", arguments: {} });
  return [said, isError, outcome.outcome === "veto" ? outcome.reason : outcome.context.tool, host.run(() => config.get("unit"))];
}
