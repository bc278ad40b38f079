// {{description}}.

import { evaluation, finding } from "@tenon/sdk";

export const concise = evaluation({
  name: "concise",
  description: "Passes when the output is short. Beyond that the score falls with its length.",
  options: { most: { type: "integer", minimum: 1, default: 100, description: "The most words." } },
  handler({ output }, { most }) {
    const text = typeof output === "string" ? output : JSON.stringify(output);
    const words = text.split(/\s+/).filter(Boolean).length;
    const score = words <= most ? 1 : most / words;
    return { score, findings: [finding("words", score, `it has ${words} words, and ${most} are the most`)] };
  },
});
