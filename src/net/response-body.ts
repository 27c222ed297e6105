import { finished, type Readable } from "node:stream";
import { ServiceError } from "../errors.ts";
import type { Decoding } from "./content-coding.ts";
import type { Deadline } from "./deadline.ts";

interface AnswerBodyOptions {
  raw: Readable;
  decoding: Decoding;
  maxBytes: number;
  /** Ends with the body. */
  deadline: Deadline;
  /** Names the request in messages. */
  what: string;
  /** The error to reject with. */
  translate: (error: unknown) => unknown;
}

/** Bytes that may wait for the reader. */
const maxQueuedBytes = 256 * 1024;

/**
 * The body of an answer as `HttpAnswer` promises it: read once, bounded, closed when left. It gives
 * every byte that came before a connection was lost, and only then the error; a stream that is read
 * by its own iterator would drop what had not been asked for.
 */
export function createResponseBody(options: AnswerBodyOptions): AsyncIterable<Uint8Array> {
  const { raw, decoding, maxBytes, deadline, what, translate } = options;
  const { decoded } = decoding;
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let bytes = 0;
  let end: { error: unknown } | undefined;
  let wake = () => {};

  const leave = () => {
    queue = [];
    queuedBytes = 0;
    deadline.end();
    decoded.destroy();
    raw.destroy();
  };
  deadline.signal.addEventListener("abort", leave, { once: true });
  const add = (chunk: Uint8Array) => {
    queue.push(chunk);
    queuedBytes += chunk.length;
    wake();
  };
  decoded.on("data", (chunk: Uint8Array) => {
    add(chunk);
    if (queuedBytes >= maxQueuedBytes) decoded.pause();
  });
  finished(decoded, { writable: false }, (error) => {
    end = { error };
    // Where it was paused: a stream that has failed still holds what came before.
    const rest: Uint8Array | null = error ? decoded.read() : null;
    if (rest !== null) add(rest);
    wake();
  });

  async function take(): Promise<Uint8Array | undefined> {
    if (queue.length === 0 && end === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await promise;
    }
    deadline.signal.throwIfAborted();
    const chunk = queue.shift();
    if (chunk === undefined) {
      if (end?.error) throw end.error;
      return undefined;
    }
    queuedBytes -= chunk.length;
    if (queuedBytes < maxQueuedBytes && decoded.isPaused()) decoded.resume();
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(what, maxBytes);
    return chunk;
  }

  const iterator: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      try {
        const value = await take();
        if (value !== undefined) return { done: false, value };
        deadline.end();
        return { done: true, value };
      } catch (error) {
        const failure = translate(decoding.failure() ?? error);
        leave();
        throw failure;
      }
    },
    // A generator would do nothing here before its first next().
    async return() {
      leave();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

function tooLarge(what: string, maxBytes: number): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    `${what}: the answer is larger than the limit of ${maxBytes} bytes`,
  );
}
