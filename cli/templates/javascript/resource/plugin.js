// {{description}}.
//
// This is the glue: what the host asks, in the types of the contract. What the plugin does is in
// `logic.js`, which tests import without any of this. Interfaces of the folder `wit` are modules:
// those that are imported have their full names, those that are exported their names in camel case.
// Options are values or `null`, and variants are `{ tag, val }`.

import { PLANETS, planet } from "./logic.js";

const ALL = {
  uri: "planets://all",
  name: "all",
  title: null,
  description: "All planets, a line each.",
  mimeType: "text/plain",
  size: null,
};

const PLANET = {
  uriTemplate: "planets://{number}",
  name: "planet",
  title: null,
  description: "One planet, by its number from the sun.",
  mimeType: "text/plain",
  extra: null,
};

// Refuses a cursor: each listing has one page.
function onlyPage(cursor) {
  if (cursor !== null) throw { code: "invalid-input", message: `there is no page ${JSON.stringify(cursor)}` };
}

function textOf(uri) {
  if (uri === ALL.uri) return PLANETS.join("\n");
  const [, number] = uri.match(/^planets:\/\/([0-9]+)$/) ?? [];
  if (number === undefined) throw { code: "not-found", message: `there is no resource ${uri}` };
  try {
    return planet(Number(number));
  } catch (wrong) {
    // Anything else that is thrown is a trap.
    if (wrong instanceof RangeError) throw { code: "not-found", message: wrong.message };
    throw wrong;
  }
}

export const lifecycle = {
  async start() {
    return { name: "{{name}}", version: "0.1.0", description: "{{description}}.", extra: null };
  },

  async stop() {},
};

export const resources = {
  async listResources(cursor, _context) {
    onlyPage(cursor);
    return { resources: [{ link: ALL, extra: null }], next: null };
  },

  async listTemplates(cursor, _context) {
    onlyPage(cursor);
    return { templates: [PLANET], next: null };
  },

  async readResource(uri, _context) {
    return [{ uri, mimeType: "text/plain", body: { tag: "text", val: textOf(uri) }, extra: null }];
  },
};
