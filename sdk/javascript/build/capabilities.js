/** Which imports a component gets: those that its manifest requests, and those that the web APIs which it uses need. */

/** The version of the contract. */
export const CONTRACT = "0.2.0";

const own = (name) => `tenon:plugin/${name}@${CONTRACT}`;
const keyvalue = (name) => `wasi:keyvalue/${name}@0.2.0-draft2`;
const wasi2 = (name) => `wasi:${name}@0.2.11`;
const wasi3 = (name) => `wasi:${name}@0.3.0`;

/** What every plugin gets. */
export const BASE = [own("log"), own("config"), own("notify")];

/** What every component made of JavaScript uses: the clock finds calls that wait for nothing. */
const ALWAYS = [wasi3("clocks/monotonic-clock")];

/** What the capabilities of the manifest stand for. Those that are not here reach no plugin in JavaScript. */
const REQUESTED = {
  messaging: [own("messaging")],
  memory: [own("memory")],
  user: [own("user")],
  state: [keyvalue("store"), keyvalue("atomics")],
  providers: [own("inference")],
  tools: [own("host-tools")],
  secrets: [own("secrets")],
};

/** What the files of `web` need, which every plugin gets. */
const WEB = {
  "random.js": [wasi3("random/random")],
};

/** What `fetch` needs. The toolchain cannot import `wasi:http` 0.3, whose functions are `async`. */
const NETWORK = [wasi2("http/types"), wasi2("http/outgoing-handler"), "host:io/poll@0.2.11", "host:io/streams@0.2.11", "host:clocks/monotonic-clock@0.2.11"];

/**
 * The interfaces to import.
 *
 * @param {Record<string, unknown[]>} capabilities `[capabilities]` of the manifest.
 * @param {Set<string>} web The files of `web` that the plugin uses.
 */
export function imports(capabilities, web) {
  const requested = Object.keys(capabilities).filter((name) => [capabilities[name]].flat().length > 0);
  const all = [...BASE, ...ALWAYS, ...requested.flatMap((name) => REQUESTED[name] ?? [])];
  if (requested.includes("network") && web.has("http.js")) all.push(...NETWORK);
  for (const [file, names] of Object.entries(WEB)) if (web.has(file)) all.push(...names);
  return all;
}
