import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { PublishedEvent, TaskEvents } from "../../feed/task-events.ts";

interface StreamStart {
  /** Start after the event with this id; default: after the newest one. */
  after?: string | undefined;
  /** The id of the newest event when the client asked; default: now. */
  newest?: string | undefined;
  /** The stream of one task ends with its deletion; default: all tasks. */
  taskId?: string | undefined;
  /** Default: tasks of all owners. */
  owner?: string | undefined;
  /** Whether the client may still read; default: always. */
  isAdmitted?: () => boolean;
}

/** How long a client should wait before it reconnects. */
const retryMs = 2_000;

const heartbeatMs = 15_000;

/** How long streams are written without a pause. */
const sliceMs = 5;

/** Events that a stream takes from the feed at a time: a full client buffer leaves the others for later. */
const maxTaken = 100;

/** Longer events are encoded once for all streams, as long as the feed has them. */
const maxOwnLength = 8 * 1024;

/**
 * Creates streams of server-sent events (WHATWG HTML §9.2) about changes of tasks. A stream buffers nothing: it keeps the id of the last event sent and
 * reads further ones from the feed as fast as its client does. If the feed no longer reaches back to that
 * id, the client gets a `reset` event.
 */
export function createEventStreams(events: TaskEvents) {
  const streams = new Map<EventStream, StreamStart>();
  let isDue = false;
  let isWriting = false;
  let isClosed = false;

  /** In slices, after each of which other requests have as much time: a response takes several turns of the event loop. */
  async function writeAll(): Promise<void> {
    const rest = createRests();
    while (isDue) {
      isDue = false;
      for (const stream of streams.keys()) {
        stream.write();
        await rest();
      }
    }
    isWriting = false;
  }

  /** Writes once for all events of one turn, and not while the publisher waits. */
  function writeSoon(): void {
    isDue = true;
    if (isWriting || streams.size === 0) return;
    isWriting = true;
    setImmediate(() => void writeAll());
  }

  const unsubscribe = events.subscribe(writeSoon);
  const heartbeats = setInterval(() => {
    for (const stream of streams.keys()) stream.heartbeat();
  }, heartbeatMs).unref();

  return {
    /** Writes events to `response`, whose headers are sent, until either side closes it. */
    open(response: Writable, start: StreamStart): void {
      // The client may have disconnected while a hook waited for the store.
      if (response.destroyed) return;
      const stream = createEventStream(events, response, { ...start, writeSoon });
      streams.set(stream, start);
      response.on("close", () => streams.delete(stream));
      if (isClosed || start.isAdmitted?.() === false) stream.endNow();
      else stream.write();
    },
    /** Ends the streams whose `isAdmitted` is false. */
    endUnadmitted(): void {
      for (const [stream, { isAdmitted }] of streams) {
        if (isAdmitted?.() === false) stream.endNow();
      }
    },
    /** Ends all streams at once. */
    close(): void {
      isClosed = true;
      unsubscribe();
      clearInterval(heartbeats);
      for (const stream of streams.keys()) stream.end();
    },
  };
}

/** Returns what waits after each slice for as long as the slice took. */
function createRests(): () => Promise<void> {
  let startMs = performance.now();
  return async () => {
    const tookMs = performance.now() - startMs;
    if (tookMs < sliceMs) return;
    await sleep(tookMs);
    startMs = performance.now();
  };
}

type EventStream = ReturnType<typeof createEventStream>;

interface StreamDeps extends StreamStart {
  /** Has `write` called. */
  writeSoon: () => void;
}

function createEventStream(events: TaskEvents, response: Writable, options: StreamDeps) {
  const { after, newest = events.lastId, taskId, owner, writeSoon } = options;
  let lastSentId = after ?? newest;
  // With the id a client can resume even if it loses the connection before the first event.
  const start = after === undefined ? `id: ${lastSentId}\n` : "";
  let isFull = !response.write(`retry: ${retryMs}\n${start}\n`);
  let hasEnded = false;

  /** Writes the events since the last one sent, until the client's buffer is full. */
  function write(): void {
    while (!isFull) {
      const missed = hasEnded ? [] : events.since(lastSentId, { count: maxTaken, owner });
      if (missed === undefined) {
        lastSentId = events.lastId;
        isFull = !response.write(`event: reset\nid: ${lastSentId}\ndata: {}\n\n`);
        return;
      }
      if (missed.length === 0) return void (lastSentId = events.lastId);
      writeUntilFull(missed);
    }
  }

  function writeUntilFull(missed: readonly PublishedEvent[]): void {
    for (const event of missed) {
      lastSentId = event.id;
      if ((taskId ?? event.taskId) !== event.taskId) continue;
      isFull = !response.write(frameOf(event));
      hasEnded = taskId !== undefined && event.type === "deleted";
      if (hasEnded) response.end();
      if (isFull || hasEnded) return;
    }
  }

  response.on("drain", () => {
    isFull = false;
    // Not at once: the client of a fast network takes megabytes before the event loop has another turn.
    writeSoon();
  });

  /** Ends the stream without the events that are left. */
  function endNow(): void {
    hasEnded = true;
    if (isFull) response.destroy();
    else response.end();
  }

  return {
    write,
    endNow,
    heartbeat(): void {
      // A block without data dispatches no event, but its id is where the client resumes.
      if (!isFull && !hasEnded) isFull = !response.write(`: still here\nid: ${lastSentId}\n\n`);
    },
    /** Ends the stream after the events so far. */
    end(): void {
      write();
      endNow();
    },
  };
}

const longFrames = new WeakMap<PublishedEvent, Buffer>();

function frameOf(event: PublishedEvent): string | Buffer {
  const { id, type, json } = event;
  const known = longFrames.get(event);
  if (known !== undefined) return known;
  const frame = `event: ${type}\nid: ${id}\ndata: ${json}\n\n`;
  if (json.length <= maxOwnLength) return frame;
  const encoded = Buffer.from(frame);
  longFrames.set(event, encoded);
  return encoded;
}
