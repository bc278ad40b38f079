/** `Headers`. */

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export class Headers {
  #values = new Map();

  constructor(init = {}) {
    const pairs = typeof init?.[Symbol.iterator] === "function" ? init : Object.entries(init ?? {});
    for (const [name, value] of pairs) this.append(name, value);
  }

  append(name, value) {
    const key = known(name);
    const values = this.#values.get(key) ?? [];
    this.#values.set(key, [...values, valid(value, name)]);
  }

  set(name, value) {
    this.#values.set(known(name), [valid(value, name)]);
  }

  get(name) {
    return this.#values.get(known(name))?.join(", ") ?? null;
  }

  getSetCookie() {
    return [...(this.#values.get("set-cookie") ?? [])];
  }

  has(name) {
    return this.#values.has(known(name));
  }

  delete(name) {
    this.#values.delete(known(name));
  }

  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries() {
    for (const name of [...this.#values.keys()].sort()) {
      const values = this.#values.get(name);
      if (name === "set-cookie") for (const value of values) yield [name, value];
      else yield [name, values.join(", ")];
    }
  }

  *keys() {
    for (const [name] of this.entries()) yield name;
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }
}

function known(name) {
  const text = String(name);
  if (!NAME.test(text)) throw new TypeError(`${JSON.stringify(text)} is no name of a header`);
  return text.toLowerCase();
}

function valid(value, name) {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\n\r]/.test(text)) throw new TypeError(`the value of the header ${name} has a line break`);
  return text;
}
