// What the plugin does.

export function greet({ name }) {
  name = name.trim();
  if (!name) throw new RangeError("`name` is empty: say whom to greet");
  return `Hello, ${name}!`;
}
