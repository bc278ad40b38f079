// {{description}}.

import { tool, ToolError } from "@tenon/sdk";

export const greet = tool({
  name: "greet",
  description: "Greets somebody.",
  readOnly: true,
  idempotent: true,
  input: { name: { type: "string", description: "Whom to greet." } },
  handler({ name }) {
    // The model reads this, and may do better.
    if (!name.trim()) throw new ToolError("`name` is empty: say whom to greet");
    return `Hello, ${name.trim()}!`;
  },
});
