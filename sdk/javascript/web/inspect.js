/** Values as the log shows them. */

const DEEPEST = 4;
const MOST_ITEMS = 100;

/** A value as text: strings as they are, anything else as a literal. */
export function format(...values) {
  const [first] = values;
  let rest = values;
  let said = "";
  if (typeof first === "string" && values.length > 1 && first.includes("%")) {
    rest = values.slice(1);
    said = first.replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === "%") return "%";
      if (rest.length === 0) return whole;
      const value = rest[0];
      rest = rest.slice(1);
      if (kind === "d" || kind === "i") return kind === "d" ? String(Number(value)) : String(parseInt(value, 10));
      if (kind === "f") return String(parseFloat(value));
      if (kind === "j") return JSON.stringify(value);
      if (kind === "c") return "";
      return typeof value === "string" ? value : inspect(value);
    });
  }
  const others = rest.map((value) => (typeof value === "string" ? value : inspect(value)));
  return [...(said ? [said] : []), ...others].join(" ");
}

/** A value as a literal, in one line. */
export function inspect(value, depth = 0, seen = new Set()) {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "bigint":
      return `${value}n`;
    case "function":
      return `[${/^class\b/.test(String(value)) ? "class" : "function"} ${value.name || "(anonymous)"}]`;
    case "object":
      break;
    default:
      return Object.is(value, -0) ? "-0" : String(value);
  }
  if (value === null) return "null";
  if (value instanceof Error) return ofError(value, depth, seen);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (typeof value.then === "function") return "Promise { … }";
  if (seen.has(value)) return "[circular]";
  if (depth >= DEEPEST) return Array.isArray(value) ? "[…]" : "{…}";
  seen.add(value);
  const text = ofObject(value, (each) => inspect(each, depth + 1, seen));
  seen.delete(value);
  return text;
}

function ofError(error, depth, seen) {
  const stack = typeof error.stack === "string" ? error.stack.trimEnd() : "";
  const title = `${error.name}: ${error.message}`;
  const whole = stack.startsWith(title) ? stack : [title, stack].filter(Boolean).join("\n");
  return error.cause === undefined || depth >= DEEPEST ? whole : `${whole}\n  caused by ${inspect(error.cause, depth + 1, seen)}`;
}

function ofObject(value, show) {
  const cut = (items) => (items.length > MOST_ITEMS ? [...items.slice(0, MOST_ITEMS), `… ${items.length - MOST_ITEMS} more`] : items);
  const list = (open, items, close) => (items.length === 0 ? `${open}${close}` : `${open} ${cut(items).join(", ")} ${close}`);
  if (Array.isArray(value)) return list("[", Array.from(value, show), "]");
  if (value instanceof Map) return list(`Map(${value.size}) {`, [...value].map(([key, member]) => `${show(key)} => ${show(member)}`), "}");
  if (value instanceof Set) return list(`Set(${value.size}) {`, [...value].map(show), "}");
  if (ArrayBuffer.isView(value) && value.length !== undefined) return list(`${value.constructor.name}(${value.length}) [`, Array.from(value, String), "]");
  const name = value.constructor?.name;
  const prefix = name && name !== "Object" ? `${name} ` : "";
  const members = Object.keys(value).map((key) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: ${show(value[key])}`);
  return list(`${prefix}{`, members, "}");
}
