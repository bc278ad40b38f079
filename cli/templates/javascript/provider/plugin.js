// {{description}}.

import { provider, TenonError } from "@tenon/sdk";

export const parrot = provider({
  name: "{{name}}",
  description: "Repeats what it is told.",
  models: [{ id: "parrot", title: "Parrot" }],
  complete({ messages }) {
    const told = messages.findLast(({ role }) => role === "user");
    if (!told) throw new TenonError("invalid-input", "the request has no user message");
    const words = told.text.split(/\s+/).filter(Boolean).length;
    return { text: told.text, usage: { input: words, output: words } };
  },
});
