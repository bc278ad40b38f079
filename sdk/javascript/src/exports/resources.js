/** The interfaces `resources` and `subscriptions`. */

import { TenonError } from "../errors.js";
import { registry } from "../registry.js";
import { toListed, toListedAll, toResourceContents, toTemplate } from "../kinds/resource.js";
import { handled } from "./failure.js";
import { onlyPage, serve } from "./serve.js";

export const resources = {
  async listResources(cursor, context) {
    return serve("the list of resources", context, async (call) => {
      onlyPage(cursor);
      const lists = registry.resources.map((entry) => listed(entry, call));
      return { resources: (await Promise.all(lists)).flat(), next: null };
    });
  },

  async listTemplates(cursor, context) {
    return serve("the list of templates", context, async () => {
      onlyPage(cursor);
      return { templates: registry.resources.filter(({ isTemplate }) => isTemplate).map(toTemplate), next: null };
    });
  },

  async readResource(uri, context) {
    return serve(`resource ${uri}`, context, (call) => read(uri, call, registry.resources));
  },
};

export const subscriptions = {
  async subscribe(uri, context) {
    return serve(`the subscription of ${uri}`, context, async () => {
      if (!matching(uri, registry.resources).entry.subscribes) throw new TenonError("not-found", `${uri} cannot be subscribed to`);
    });
  },

  async unsubscribe() {},
};

/** What a definition has in the list of resources. */
export async function listed(entry, context) {
  if (!entry.isTemplate) return [toListed(entry)];
  const { list } = entry.definition;
  return list ? handled(entry, () => entry.definition.list(context), (value) => toListedAll(entry, value)) : [];
}

/** Reads a resource. */
export async function read(uri, context, entries) {
  const { entry, values } = matching(uri, entries);
  return handled(entry, () => entry.handler(values, context), (value) => toResourceContents(value, uri, entry));
}

/** The definition that has a URI; one without variables goes before templates. */
function matching(uri, entries) {
  const ordered = [...entries].sort((one, other) => one.isTemplate - other.isTemplate);
  for (const entry of ordered) {
    const values = entry.template.match(uri);
    if (values) return { entry, values };
  }
  throw new TenonError("not-found", `there is no resource ${uri}`);
}
