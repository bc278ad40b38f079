/** `ReadableStream`: the part of it that bodies need. */

/** Where a source writes. */
class Controller {
  #stream;

  constructor(stream) {
    this.#stream = stream;
  }

  get desiredSize() {
    return 1 - this.#stream.queued;
  }

  enqueue(chunk) {
    this.#stream.push({ chunk });
  }

  close() {
    this.#stream.push({ done: true });
  }

  error(reason) {
    this.#stream.push({ error: reason, isError: true });
  }
}

export class ReadableStream {
  #queue = [];
  #waiting = [];
  #source;
  #controller;
  #ended;
  #pulling = false;
  #reader;
  #started;

  constructor(source = {}) {
    this.#source = source;
    this.#controller = new Controller({ push: (entry) => this.#push(entry), queued: 0 });
    this.#started = Promise.resolve(source.start?.(this.#controller));
    this.#started.catch((reason) => this.#push({ error: reason, isError: true }));
  }

  static from(iterable) {
    const iterator = (iterable[Symbol.asyncIterator] ?? iterable[Symbol.iterator]).call(iterable);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(await value);
      },
      cancel: (reason) => iterator.return?.(reason),
    });
  }

  get locked() {
    return this.#reader !== undefined;
  }

  #push(entry) {
    if (this.#ended) return;
    if (entry.done || entry.isError) this.#ended = entry;
    const reader = this.#waiting.shift();
    if (!reader) this.#queue.push(entry);
    else settle(entry, reader);
    if (this.#ended) for (const other of this.#waiting.splice(0)) settle(this.#ended, other);
  }

  #read() {
    return new Promise((resolve, reject) => {
      const next = this.#queue[0];
      if (next) {
        if (!next.done && !next.isError) this.#queue.shift();
        settle(next, { resolve, reject });
      } else if (this.#ended) settle(this.#ended, { resolve, reject });
      else {
        this.#waiting.push({ resolve, reject });
        this.#pull();
      }
    });
  }

  async #pull() {
    if (this.#pulling || !this.#source.pull) return;
    this.#pulling = true;
    try {
      await this.#started;
      while (this.#waiting.length > 0 && !this.#ended) {
        const before = this.#waiting.length;
        await this.#source.pull(this.#controller);
        if (this.#waiting.length === before && !this.#ended) await null;
      }
    } catch (reason) {
      this.#push({ error: reason, isError: true });
    } finally {
      this.#pulling = false;
    }
  }

  getReader() {
    if (this.locked) throw new TypeError("the stream is read by somebody else");
    const reader = {
      read: () => this.#read(),
      releaseLock: () => void (this.#reader = undefined),
      cancel: (reason) => this.#cancel(reason),
    };
    this.#reader = reader;
    return reader;
  }

  async #cancel(reason) {
    this.#ended ??= { done: true };
    this.#queue = [];
    for (const other of this.#waiting.splice(0)) settle({ done: true }, other);
    await this.#source.cancel?.(reason);
  }

  async cancel(reason) {
    if (this.locked) throw new TypeError("the stream is read by somebody else");
    await this.#cancel(reason);
  }

  async *[Symbol.asyncIterator]() {
    const reader = this.getReader();
    let isDone = false;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          isDone = true;
          return;
        }
        yield value;
      }
    } finally {
      if (!isDone) await this.#cancel();
      reader.releaseLock();
    }
  }

  values() {
    return this[Symbol.asyncIterator]();
  }

  pipeThrough({ readable, writable }) {
    (async () => {
      const writer = writable.getWriter();
      try {
        for await (const chunk of this) await writer.write(chunk);
        await writer.close();
      } catch (reason) {
        await writer.abort(reason);
      }
    })();
    return readable;
  }
}

function settle({ chunk, done, error, isError }, { resolve, reject }) {
  if (isError) reject(error);
  else resolve(done ? { done: true, value: undefined } : { done: false, value: chunk });
}
