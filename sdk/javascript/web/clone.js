/** `structuredClone`, without transfers. */


const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

export function structuredClone(value) {
  return clone(value, new Map());
}

function clone(value, seen) {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new DOMException(`a ${typeof value} cannot be cloned`, "DataCloneError");
  }
  if (value === null || typeof value !== "object") return value;
  if (seen.has(value)) return seen.get(value);
  const keep = (copy) => {
    seen.set(value, copy);
    return copy;
  };
  if (Array.isArray(value)) {
    const copy = keep(new Array(value.length));
    for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
    return copy;
  }
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = clone(value.buffer, seen);
    return keep(new value.constructor(buffer, value.byteOffset, value.length ?? value.byteLength));
  }
  if (value instanceof Map) {
    const copy = keep(new Map());
    for (const [key, member] of value) copy.set(clone(key, seen), clone(member, seen));
    return copy;
  }
  if (value instanceof Set) {
    const copy = keep(new Set());
    for (const member of value) copy.add(clone(member, seen));
    return copy;
  }
  if (value instanceof Error) {
    const copy = keep(new (ERRORS[value.name] ?? Error)(value.message));
    copy.stack = value.stack;
    if ("cause" in value) copy.cause = clone(value.cause, seen);
    return copy;
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return keep(Object(value.valueOf()));
  if (typeof value.then === "function" || value instanceof WeakMap || value instanceof WeakSet) {
    throw new DOMException(`an object of the class ${value.constructor.name} cannot be cloned`, "DataCloneError");
  }
  const copy = keep({});
  for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
  return copy;
}
