/** The interfaces `providers` and `provider-stream`. */

import { TenonError } from "../errors.js";
import { registry } from "../registry.js";
import { toAnswer, toModel } from "../kinds/provider.js";
import { fromRequest, toDelta, toSummary } from "../model.js";
import { handled, toFailure } from "./failure.js";
import { answer, serve } from "./serve.js";

export const providers = {
  async listProviders() {
    return registry.providers.map(({ record }) => record());
  },

  async listModels() {
    return answer("the list of models", async () => {
      const lists = registry.providers.map(async ({ key, models }) => (await models()).map((model) => toModel(model, key)));
      return (await Promise.all(lists)).flat();
    });
  },

  async complete(request, context) {
    return serve(`model ${JSON.stringify(request.model)}`, context, async (call) => {
      const entry = await of(request.model, registry.providers);
      return completed(entry, request, call);
    });
  },
};

export const providerStream = {
  async completeStream(request, context) {
    return serve(`model ${JSON.stringify(request.model)}`, context, async (call) => {
      const entry = await of(request.model, registry.providers);
      const { readable, writable } = wit.Future(wit.Future.types.RESULT_COMPLETION_SUMMARY_ERROR ?? 0);
      return [deltas(entry, request, call, writable), readable];
    });
  },
};

/** The pieces of an answer; how it ended goes to the future. */
async function* deltas(entry, request, call, ended) {
  let end = { tag: "err", val: toFailure(new TenonError("cancelled", "nobody listens any more")) };
  try {
    if (!entry.streams) {
      const { parts, summary } = await completed(entry, request, call);
      for (const { tag, val } of parts) if (tag === "text") yield { tag, val };
      end = { tag: "ok", val: summary };
      return;
    }
    const stream = entry.stream(fromRequest(request), call);
    for (;;) {
      const { done, value } = await stream.next();
      if (done) {
        end = { tag: "ok", val: toSummary(value, request.model) };
        return;
      }
      yield toDelta(value);
    }
  } catch (thrown) {
    end = { tag: "err", val: toFailure(thrown, entry.what) };
  } finally {
    ended.write(end);
  }
}

/** Has a definition complete a request, which is the contract's record. */
export function completed(entry, request, context) {
  return handled(entry, () => entry.complete(fromRequest(request), context), (value) => toAnswer(value, request.model));
}

/** The provider of a model. */
export async function of(model, entries) {
  for (const entry of entries) {
    if ((await entry.models()).some((each) => (each.id ?? each) === model)) return entry;
  }
  throw new TenonError("not-found", `there is no model ${JSON.stringify(model)}`);
}
