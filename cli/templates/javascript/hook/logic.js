// What the plugin does.

// The context of a message with a signature below it; nothing where there is no message.
export function sign(context, signature) {
  if (typeof context.message !== "string") return null;
  return { ...context, message: `${context.message}\n${signature}` };
}
