/** Finds promises of the host that nobody awaits: what they fail with would be lost. */

/** The promises that nobody has asked for their outcome yet. */
const forgotten = new Set();

/**
 * Watches a promise until somebody awaits it.
 *
 * @template T
 * @param {string} what What began, such as `fetch`.
 * @param {Promise<T>} promise
 * @returns {Promise<T>} The same promise.
 */
export function watched(what, promise) {
  const entry = { what, stack: new Error().stack };
  forgotten.add(entry);
  return Object.defineProperties(promise, {
    // `await` calls `then` of promises that are not of the class `Promise` itself.
    constructor: { value: Object },
    then: {
      value(...reactions) {
        forgotten.delete(entry);
        return Promise.prototype.then.apply(this, reactions);
      },
    },
  });
}

/** What nobody has awaited; it is told once. */
export function takeForgotten() {
  const all = [...forgotten];
  forgotten.clear();
  return all;
}
