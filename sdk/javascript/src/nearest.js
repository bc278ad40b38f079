/** The name that was probably meant. */

/** How many letters have to change to make one text of another, where two in exchanged places are one change. */
function distance(one, other) {
  let before = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        next[j] = Math.min(next[j], before[j - 2] + 1);
      }
    }
    before = row;
    row = next;
  }
  return row[other.length];
}

/**
 * The nearest of some names, if one is near: a third of its letters may differ. Case and separators do not count.
 *
 * @param {string} name
 * @param {Iterable<string>} names
 * @returns {string | undefined}
 */
export function nearest(name, names) {
  const plain = (text) => text.toLowerCase().replace(/[-_ ]/g, "");
  let best;
  let least = Infinity;
  for (const candidate of names) {
    const away = distance(plain(name), plain(candidate));
    if (away < least && away <= Math.max(1, Math.floor(candidate.length / 3))) {
      best = candidate;
      least = away;
    }
  }
  return best;
}

/** A sentence that names the nearest, or else all if they are few. */
export function suggestion(name, names) {
  const all = [...names];
  const near = nearest(name, all);
  if (near !== undefined) return `did you mean \`${near}\`?`;
  if (all.length === 0) return "there are none";
  return `there are ${all.map((known) => `\`${known}\``).join(", ")}`;
}
