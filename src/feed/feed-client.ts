import { createParser, type EventSourceMessage } from "eventsource-parser";

interface FeedOptions<Change> {
  /** Base URL of the service, with a slash at the end. */
  url: URL;
  /** Sent with each request for the stream, such as a key; default: none. */
  headers?: Readonly<Record<string, string>>;
  /**
   * Reads the current state; called when the stream is open and cannot replay all that came before. `signal` is aborted when the
   * connection ends, or nothing more is to be read.
   */
  readAll(signal: AbortSignal): Promise<Change[]>;
  /** Returns what events mean, at least one, in their order; fails if they are not this service's. */
  parse(events: readonly EventSourceMessage[], signal: AbortSignal): Promise<Change[]>;
  /** Called when the stream is open, and what came before has been read. */
  onConnect?(): void;
  /** Called when the connection, or a call of `readAll` or `parse`, fails. What it throws ends `follow`. */
  onDisconnect(error: unknown): void;
}

const firstPauseMs = 200;
const longestPauseMs = 5_000;
const responseTimeoutMs = 10_000;

/** Three times the service's heartbeat interval. */
const silenceMs = 45_000;

/** How long reading all may take at most. */
const longestReadMs = 600_000;

/** Creates a client that follows the event stream of a service, in Node and in a browser. */
export function createFeedClient<Change>(options: FeedOptions<Change>) {
  const { url, headers = {}, readAll, parse, onConnect, onDisconnect } = options;
  let lastId: string | undefined;
  let pauseMs = firstPauseMs;
  /** How long reading all may take: longer after it has failed. */
  let readMs = silenceMs;

  async function* connect(signal: AbortSignal): AsyncGenerator<Change[]> {
    const connection = new AbortController();
    const expectDataWithin = createDeadline(connection);
    try {
      expectDataWithin(responseTimeoutMs);
      const place = lastId !== undefined && { "last-event-id": lastId };
      const ended = AbortSignal.any([signal, connection.signal]);
      const stream = await openStream(url, { ...headers, ...place }, ended);
      const read = async () => {
        expectDataWithin(readMs);
        readMs = longestReadMs;
        const all = await readAll(ended);
        readMs = silenceMs;
        return all;
      };
      if (lastId === undefined) yield await read();
      pauseMs = firstPauseMs;
      onConnect?.();
      for await (const events of readEvents(chunksOf(stream, () => expectDataWithin(silenceMs)))) {
        yield events.some(({ event }) => event === "reset") ? await read() : await parse(events, ended);
        lastId = events.findLast(({ id }) => id !== undefined)?.id ?? lastId;
      }
    } finally {
      expectDataWithin();
      connection.abort();
    }
  }

  return {
    /**
     * Yields the current state, then every change, in groups as they arrive; ends when `signal` is aborted. After a lost
     * connection, and when called again, it resumes after the last event that it received; if the service no longer has the
     * missed ones, all is read again. Retries after 200 ms, doubled with each failure up to 5 s, or later if an error is a
     * `RetryLater`.
     */
    async *follow(signal: AbortSignal): AsyncGenerator<Change[]> {
      while (!signal.aborted) {
        let waitMs = pauseMs;
        try {
          yield* connect(signal);
          throw new Error("the service closed the connection");
        } catch (error) {
          if (signal.aborted) return;
          waitMs = Math.max(waitMs, waitOf(error));
          onDisconnect(error);
        }
        pauseMs = Math.min(2 * pauseMs, longestPauseMs);
        await sleep(waitMs, signal);
      }
    },
  };
}

/** Creates a function that aborts `connection` unless it is called again within `ms`; without `ms` it only ends the wait before. */
function createDeadline(connection: AbortController) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (ms?: number): void => {
    clearTimeout(timer);
    if (ms) timer = setTimeout(() => connection.abort(new Error(`no data for ${ms / 1000} s`)), ms);
  };
}

/** An error that says when to retry, such as that of `expectOk`. */
export interface RetryLater extends Error {
  /** Milliseconds; 0: nothing is said. */
  retryAfterMs: number;
}

function waitOf(error: unknown): number {
  return error instanceof Error && "retryAfterMs" in error ? Number(error.retryAfterMs) : 0;
}

class StatusError extends Error implements RetryLater {
  readonly status: number;
  readonly retryAfterMs: number;

  constructor(response: Response, expected: string) {
    const type = response.headers.get("content-type") ?? "no type";
    super(`it responded with ${response.status} (${type}) instead of 200 (${expected})`);
    this.status = response.status;
    this.retryAfterMs = retryAfterMs(response);
  }
}

/** Returns the status of the response that an error is about; undefined if it is about something else. */
export function statusOf(error: unknown): unknown {
  return error instanceof Error && "status" in error ? error.status : undefined;
}

/**
 * Returns the delay of `Retry-After` in milliseconds, at most a minute; 0 if there is none, or it is a date,
 * which the service never sends.
 */
export function retryAfterMs({ headers }: Response): number {
  const seconds = Number(headers.get("retry-after") ?? 0);
  return seconds > 0 ? Math.min(seconds, 60) * 1000 : 0;
}

/**
 * Throws if the status is not 200 or the body not of this media type; the feed then waits for as long as
 * `Retry-After` says.
 */
export function expectOk(response: Response, mediaType: string): void {
  const [type] = (response.headers.get("content-type") ?? "").split(";");
  if (response.status !== 200 || type !== mediaType) throw new StatusError(response, mediaType);
}

async function openStream(
  base: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const accept = "text/event-stream";
  const response = await fetch(new URL("tasks/events", base), { headers: { ...headers, accept }, signal });
  expectOk(response, accept);
  // Read from now on: Node cancels an unread body once its response is garbage.
  return (response.body ?? new ReadableStream()).getReader();
}

/** Longest event, UTF-16 units; a task with all its page information has some 100,000. */
const maxBufferSize = 16 * 1024 * 1024;

/**
 * Yields the events of an event stream (WHATWG HTML §9.2.6), in groups as they arrive. A block without
 * data is not an event; an event that is incomplete at the end of the stream is dropped.
 *
 * @throws Error if an event has over 16 Mi characters.
 */
export async function* readEvents(stream: AsyncIterable<Uint8Array>): AsyncGenerator<EventSourceMessage[]> {
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize,
    onEvent: (event) => void events.push(event),
    onError({ type }) {
      if (type === "max-buffer-size-exceeded") throw new Error("the service sent an event that is too long");
    },
  });
  for await (const bytes of stream) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    if (events.length > 0) yield events.splice(0);
  }
}

/**
 * Yields the chunks of a stream, which not every browser can iterate over; `onChunk` is called when one has come, and when the next
 * one is awaited.
 */
async function* chunksOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  onChunk: () => void,
): AsyncGenerator<Uint8Array> {
  for (;;) {
    onChunk();
    const part = await reader.read();
    if (part.done) return;
    onChunk();
    yield part.value;
  }
}

/** Resolves after `ms`, or when `signal` is aborted. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", resolve);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", resolve);
}
