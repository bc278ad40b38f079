/** The interfaces that every plugin exports: `lifecycle` and `cancellation`. */

import { cancel } from "../context.js";

/**
 * The interface `lifecycle` of a plugin.
 *
 * @param {{ name: string, version: string, description: string }} identity What its `package.json` says.
 */
export function lifecycle(identity) {
  return {
    async start() {
      return { ...identity, extra: null };
    },

    async stop() {},
  };
}

export const cancellation = {
  async cancel(callId) {
    cancel(callId);
  },
};
