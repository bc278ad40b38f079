/** News from the plugin. None of it answers. */

import { always } from "../connection.js";

/** Says that the resource of this URI has changed, to those who subscribed to it. */
export function resourceUpdated(uri) {
  always("tenon:plugin/notify").resourceUpdated(uri);
}

/** Says that the plugin contributes something else now; the host lists it again soon. */
export function contributionsChanged() {
  always("tenon:plugin/notify").contributionsChanged();
}
