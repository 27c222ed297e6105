import type { ServerResponse } from "node:http";
import type { PastEvent, TaskEvents } from "../task-events.ts";

/** Streams of server-sent events (WHATWG HTML §9.2), fed from the changes of tasks. */
export interface EventStreams {
  /** Begins to write to `response`, whose headers have been sent. */
  open(response: ServerResponse, start: StreamStart): void;
  readonly count: number;
  /** Ends all streams at once. */
  close(): void;
}

export interface StreamStart {
  /** Go on behind the event with this id; absent: with what comes from now on. */
  after?: string | undefined;
  /** Only the changes of this task. */
  taskId?: string | undefined;
}

/** How long a client waits before it comes back. */
const retryMs = 2_000;

const heartbeatMs = 15_000;

/**
 * A stream keeps nothing but its place in the feed: it takes as much as its client reads, and goes on
 * from there. Where the feed no longer reaches back to that place, the client is told with `reset`. One
 * that has taken nothing from one heartbeat to the next is cut off.
 */
export function createEventStreams(events: TaskEvents): EventStreams {
  const streams = new Set<EventStream>();
  let isDue = false;

  function writeAll(): void {
    isDue = false;
    for (const stream of streams) stream.write();
  }

  // Together for all that is published in one turn, and not while the publisher waits.
  const unsubscribe = events.subscribe(() => {
    if (isDue || streams.size === 0) return;
    isDue = true;
    setImmediate(writeAll);
  });
  const heart = setInterval(() => {
    for (const stream of streams) stream.beat();
  }, heartbeatMs).unref();

  return {
    open(response, start) {
      const stream = createEventStream(events, response, start);
      streams.add(stream);
      response.on("close", () => streams.delete(stream));
      stream.write();
    },
    get count() {
      return streams.size;
    },
    close() {
      unsubscribe();
      clearInterval(heart);
      for (const stream of streams) stream.close();
    },
  };
}

interface EventStream {
  /** Writes what has come since, as far as the client takes it. */
  write(): void;
  beat(): void;
  close(): void;
}

function createEventStream(
  events: TaskEvents,
  response: ServerResponse,
  { after = events.lastId, taskId }: StreamStart,
): EventStream {
  let lastSentId = after;
  let isFull = !response.write(`retry: ${retryMs}\n\n`);
  let beatsWhileFull = 0;
  let isOver = false;

  function write(): void {
    if (isFull || isOver) return;
    const missed = events.since(lastSentId);
    if (missed === undefined) {
      lastSentId = events.lastId;
      isFull = !response.write(`event: reset\nid: ${lastSentId}\ndata: {}\n\n`);
      return;
    }
    for (const event of missed) {
      lastSentId = event.id;
      if (taskId !== undefined && event.taskId !== taskId) continue;
      isFull = !response.write(frameOf(event));
      if (isFull) return;
    }
  }

  response.on("drain", () => {
    isFull = false;
    beatsWhileFull = 0;
    write();
  });

  return {
    write,
    beat() {
      if (isFull && ++beatsWhileFull === 2) response.destroy();
      // An id without data is no event, but a place to come back to.
      if (!isFull) isFull = !response.write(`: still here\nid: ${lastSentId}\n\n`);
    },
    close() {
      write();
      isOver = true;
      if (isFull) response.destroy();
      else response.end();
    },
  };
}

function frameOf({ id, type, json }: PastEvent): string {
  return `event: ${type}\nid: ${id}\ndata: ${json}\n\n`;
}
