/** What the fields of definitions have to be. */

import { kindOf } from "./registry.js";

const NAME = /^[A-Za-z0-9_.\-]{1,128}$/;

const not = (value, expected) => `it is ${kindOf(value)} and has to be ${expected}`;

/** A name by which a host calls something. */
export const name = {
  required: true,
  check(value) {
    if (typeof value !== "string") return not(value, "a string");
    if (!NAME.test(value)) {
      return `${JSON.stringify(value)} is no name: names have 1 to 128 of the characters A-Z, a-z, 0-9, \`_\`, \`-\` and \`.\``;
    }
  },
  hint: 'write `name: "greet"`',
};

/** A text that is not empty. */
export const text = {
  check(value) {
    if (typeof value !== "string") return not(value, "a string");
    if (!value.trim()) return "it is empty";
  },
  hint: "write a text between quotes, or leave the field out",
};

/** What something is for. */
export const description = {
  ...text,
  required: true,
  hint: "say in a sentence what it does and when to use it: models and people choose by it",
};

/** What is called. */
export const handler = {
  required: true,
  check: (value) => (typeof value === "function" ? undefined : not(value, "a function")),
  hint: "write `handler(arguments, context) { … }`",
};

/** A function, if it is there. */
export const optionalFunction = {
  check: (value) => (typeof value === "function" ? undefined : not(value, "a function")),
  hint: "write a function, or leave the field out",
};

/** `true` or `false`. */
export const flag = {
  check: (value) => (typeof value === "boolean" ? undefined : not(value, "`true` or `false`")),
  hint: "write `true` or `false`, without quotes",
};

/** A whole number of 32 bits. */
export const priority = {
  check: (value) => (Number.isInteger(value) && Math.abs(value) < 2 ** 31 ? undefined : not(value, "a whole number")),
  hint: "write a number such as `10`: handlers of a greater one run earlier, and the usual one is 0",
};

/** An object that is written as JSON. */
export const json = {
  check: (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? undefined : not(value, "an object")),
  hint: "write `{ … }`, with names and what they stand for",
};

/** An array of strings. */
export const strings = {
  check: (value) =>
    Array.isArray(value) && value.every((each) => typeof each === "string") ? undefined : not(value, "an array of strings"),
  hint: 'write `["…"]`',
};
