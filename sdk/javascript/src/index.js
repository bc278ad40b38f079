/**
 * Write Tenon plugins in JavaScript and TypeScript.
 *
 * A plugin is a file that calls the functions below; `tenon build` makes a component of it. Handlers stay plain
 * functions, which tests call natively; `@tenon/sdk/testing` has a host for them.
 */

export { tool } from "./kinds/tool.js";
export { hook, veto } from "./kinds/hook.js";
export { resource } from "./kinds/resource.js";
export { prompt } from "./kinds/prompt.js";
export { evaluation, finding } from "./kinds/evaluation.js";
export { provider } from "./kinds/provider.js";
export { audio, embedded, image, resourceLink, text, toolResult } from "./content.js";
export { ToolError, TenonError } from "./errors.js";
export * as config from "./services/config.js";
export * as inference from "./services/inference.js";
export * as log from "./services/log.js";
export * as memory from "./services/memory.js";
export * as messaging from "./services/messaging.js";
export * as notify from "./services/notify.js";
export * as secrets from "./services/secrets.js";
export * as state from "./services/state.js";
export * as tools from "./services/tools.js";
export * as user from "./services/user.js";
