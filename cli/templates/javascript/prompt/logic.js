// What the plugin does.

// The message that asks for an explanation.
export function explain({ topic, audience = "a beginner" }) {
  return `Explain ${topic} to ${audience}.`;
}
