// What the plugin does.

// What the model answers to the texts of a message, and how many words that has.
export function repeat(texts) {
  const text = texts.join("");
  return { text, words: text.split(/\s+/).filter(Boolean).length };
}
