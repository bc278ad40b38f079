/** The points of a host's work at which hooks run, and whether a handler may stop what is about to happen. */

export const POINTS = {
  "before-plan": true,
  "after-plan": false,
  "before-execute": true,
  "after-execute": false,
  "before-evaluate": true,
  "after-evaluate": false,
  "on-learning": false,
  "on-pattern": false,
  "message-received": true,
  "message-sending": true,
  "before-completion": true,
  "after-completion": false,
  "before-tool-call": true,
  "after-tool-call": false,
};

/** A point of a host's own: a prefix, a colon and the rest. */
export const isCustom = (point) => /^[^:]+:.+$/.test(point);
