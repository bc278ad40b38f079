/** Language models of the host. The manifest names them with `providers = ["default"]`. */

import { callLater, requested } from "../connection.js";
import { fromCompletion, toRequest } from "../model.js";

/**
 * Has a model complete a request.
 *
 * @param {string | object} request A prompt, or `{ prompt | messages, model, system, maxTokens, … }`; see the type
 *   `CompletionRequest`. Without `model` it is `default`, which the host chooses.
 * @returns {Promise<object>} With `text`, and with `parts`, `model`, `stopReason` and `usage`.
 * @throws {TenonError} `denied` for a model that is not granted, and what the provider answers.
 */
export function complete(request) {
  return callLater("inference.complete", async () => {
    const record = toRequest(request);
    const inference = requested("tenon:plugin/inference", "providers", [record.model]);
    return fromCompletion(await inference.complete(record));
  });
}
