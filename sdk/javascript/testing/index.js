/**
 * A scripted host, for tests of a plugin's functions: under `node --test`, without a component.
 *
 * A test says what the host grants and how it answers, calls the plugin, and looks at what came of it. Whatever is not
 * scripted is answered as by a host that did not grant it.
 */

export { Host } from "./host.js";
