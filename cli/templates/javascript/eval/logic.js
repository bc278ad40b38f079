// What the plugin does.

// How short an output is, from 0 to 1, and why.
export function concise(output, { most = 100 } = {}) {
  const text = typeof output === "string" ? output : JSON.stringify(output ?? null);
  const words = text.split(/\s+/).filter(Boolean).length;
  const score = words <= most ? 1 : most / words;
  return { score, reason: `it has ${words} words, and ${most} are the most` };
}
