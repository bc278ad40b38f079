/**
 * Has Node import TypeScript, for tests: `node --import @tenon/sdk/register --test plugin.test.ts`. Types are removed
 * and not checked.
 */

import { register } from "node:module";

register("./hooks.js", import.meta.url);
