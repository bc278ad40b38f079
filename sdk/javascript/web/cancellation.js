/**
 * Aborts the signal of a call that the host cancels, on instances that calls share.
 *
 * The host cancels through a call of its own, and what that call sets off would be taken for a part of it: so each call
 * whose signal is used asks for itself.
 */

import { isRunning, watchWith } from "../src/context.js";
import { turn } from "./clock.js";

/** How often a call asks, in milliseconds. */
const INTERVAL = 25;

watchWith(async (context, abort) => {
  while (isRunning(context) && !context.isCancelled) await turn(INTERVAL);
  if (context.isCancelled) abort();
});
