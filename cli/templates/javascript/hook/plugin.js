// {{description}}.

import { config, hook } from "@tenon/sdk";

export const sign = hook("message-sending", (context) => {
  if (typeof context.message !== "string") return;
  context.message += `\n${config.get("signature", "Sent with {{name}}")}`;
});
