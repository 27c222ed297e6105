import { finished, type Readable } from "node:stream";
import type { Decoding } from "./content-coding.ts";
import type { Deadline } from "../../async/deadline.ts";
import { invalidResponseError } from "../upstream-error.ts";
import { ServiceError } from "../../model/errors.ts";

interface ResponseBodyOptions {
  raw: Readable;
  decoding: Decoding;
  maxBytes: number;
  minSpeed: MinSpeed;
  /** Is ended together with the body. */
  deadline: Deadline;
  /** Names the request in messages. */
  what: string;
  toError: (error: unknown) => unknown;
}

/** Bytes that are queued for the reader before the socket is paused. */
const maxQueuedBytes = 256 * 1024;
/** The same for chunks, which a server may make as short as a byte: taking the first of an array takes linear time. */
const maxQueuedChunks = 256;
/** Shorter chunks that are queued are joined up to this many bytes: each one that a reader gets takes 10 µs. */
const minJoinedBytes = 4 * 1024;

/**
 * Creates the body of an `HttpResponse`: iterable once, limited to `maxBytes`, closed when the iteration
 * ends. When the connection is lost, it first yields every byte that was received and then rejects; a
 * stream's own iterator would drop the bytes that it still has queued.
 */
export function createResponseBody(options: ResponseBodyOptions): AsyncIterable<Uint8Array> {
  const { raw, decoding, maxBytes, minSpeed, deadline, what, toError } = options;
  const { decoded } = decoding;
  const chunks = createChunkQueue(decoded);
  const meter = createSpeedMeter(minSpeed, what, chunks.fail);
  let bytes = 0;

  const close = () => {
    chunks.clear();
    deadline.end();
    decoded.destroy();
    raw.destroy();
  };
  deadline.signal.addEventListener("abort", close, { once: true });

  async function take(): Promise<Uint8Array | undefined> {
    if (chunks.isEmpty()) {
      meter.start();
      await chunks.wait();
      meter.stop();
    }
    deadline.signal.throwIfAborted();
    const chunk = chunks.shift();
    if (chunk === undefined) return undefined;
    meter.add(chunk.length);
    bytes += chunk.length;
    if (bytes <= maxBytes) return chunk;
    throw invalidResponseError(what, `the response is larger than the limit of ${maxBytes} bytes`);
  }

  const iterator: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      try {
        const value = await take();
        if (value !== undefined) return { done: false, value };
        deadline.end();
        return { done: true, value };
      } catch (error) {
        const failure = toError(decoding.error() ?? error);
        close();
        throw failure;
      }
    },
    // Not a generator: its return() would run no code before the first next().
    async return() {
      close();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/** Queues what `decoded` emits, and pauses it while the queue is full. */
function createChunkQueue(decoded: Readable) {
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let end: { error: unknown } | undefined;
  let wake = () => {};

  const isFull = () => queuedBytes >= maxQueuedBytes || queue.length >= maxQueuedChunks;
  const add = (chunk: Uint8Array) => {
    queue.push(chunk);
    queuedBytes += chunk.length;
    wake();
  };
  decoded.on("data", (chunk: Uint8Array) => {
    add(chunk);
    if (isFull()) decoded.pause();
  });
  finished(decoded, { writable: false }, (error) => {
    end = { error };
    // A stream that failed while it was paused still has bytes that it received before.
    const rest: Uint8Array | null = error ? decoded.read() : null;
    if (rest !== null) add(rest);
    wake();
  });

  return {
    /** Whether the reader has to wait. */
    isEmpty: (): boolean => queue.length === 0 && end === undefined,
    wait(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      return promise;
    },
    /** Returns the next chunk, undefined at the end; throws why the stream failed. */
    shift(): Uint8Array | undefined {
      const chunk = takeJoined(queue);
      if (chunk === undefined) {
        if (end?.error) throw end.error;
        return undefined;
      }
      queuedBytes -= chunk.length;
      if (!isFull() && decoded.isPaused()) decoded.resume();
      return chunk;
    },
    fail(error: unknown): void {
      end = { error };
      wake();
    },
    clear(): void {
      queue = [];
      queuedBytes = 0;
    },
  };
}

/** Takes the first chunk of a queue, and short ones after a short one with it; undefined if there is none. */
function takeJoined(queue: Uint8Array[]): Uint8Array | undefined {
  let count = 0;
  let bytes = 0;
  for (const { length } of queue) {
    if (count > 0 && bytes + length > minJoinedBytes) break;
    bytes += length;
    count += 1;
  }
  return count > 1 ? Buffer.concat(queue.splice(0, count), bytes) : queue.shift();
}

/** The least speed of a response's body. */
export interface MinSpeed {
  /** Bytes per second, on average over `windowMs`; 0: any speed will do. */
  bytesPerS: number;
  windowMs: number;
}

/** When a slow server is worth another attempt, seconds. */
const retryAfterS = 60;

/** Into how many parts a window is divided: each time that is measured counts for two of them at most. */
const windowParts = 20;

/**
 * Creates a meter of one body that calls `onSlow` with an `upstream_timeout` error when `windowMs` of waiting have
 * brought fewer bytes than `minSpeed` demands; then the next window starts. Time in which this process does not run, as it is
 * suspended or gets no processor, hardly counts: it says nothing of the server. `what` names the request. A meter that is stopped has no timer.
 */
function createSpeedMeter({ bytesPerS, windowMs }: MinSpeed, what: string, onSlow: (error: ServiceError) => void) {
  const partMs = windowMs / windowParts;
  let bytes = 0;
  let waitedMs = 0;
  let startedAt = 0;
  let timer: NodeJS.Timeout | undefined;

  function wait(): void {
    startedAt = performance.now();
    timer = setTimeout(endPart, Math.min(partMs, windowMs - waitedMs));
  }

  function addWaited(): void {
    waitedMs += Math.min(performance.now() - startedAt, 2 * partMs);
  }

  function endPart(): void {
    addWaited();
    if (waitedMs < windowMs) return wait();
    const speed = bytes / (windowMs / 1000);
    if (speed < bytesPerS) return onSlow(slowError(what, speed, { bytesPerS, windowMs }));
    bytes = 0;
    waitedMs = 0;
    wait();
  }

  return {
    /** The reader waits for the server's next bytes; the time until `stop` counts. */
    start(): void {
      if (bytesPerS > 0) wait();
    },
    /** The reader no longer waits: the time until the next `start` does not count. */
    stop(): void {
      if (bytesPerS === 0) return;
      clearTimeout(timer);
      addWaited();
    },
    /** Adds bytes that the reader has received. */
    add(more: number): void {
      bytes += more;
    },
  };
}

function slowError(what: string, speed: number, { bytesPerS, windowMs }: MinSpeed): ServiceError {
  const rule = `the response must have at least ${bytesPerS} bytes/s over ${windowMs / 1000} s`;
  const message = `${what}: ${rule} (MIN_SPEED_BPS), it has ${Math.floor(speed * 100) / 100}`;
  return new ServiceError("upstream_timeout", message, { retryAfterS });
}
