// {{description}}.

import { prompt } from "@tenon/sdk";

export const explain = prompt({
  name: "explain",
  description: "Asks for an explanation.",
  arguments: {
    topic: { description: "What to explain." },
    audience: { description: "Whom to explain it to.", optional: true, complete: ["a beginner", "a child", "an expert"] },
  },
  handler: ({ topic, audience = "a beginner" }) => `Explain ${topic} to ${audience}.`,
});
