import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Shares } from "../../async/shares.ts";

/** Reading or writing less JSON takes less than a millisecond, characters. */
export const longJson = 16 * 1024;

/**
 * Turns of the event loop for requests with long work: one request in each turn of the loop; owners take turns. Reads of records
 * (`access/paced-reads.ts`) have a mechanism of their own: most are so short that hundreds fit into one turn of the loop.
 */
interface Turns {
  /** Whether a request has the turn of now, so that further ones have to wait: for work whose length is known only when it is done. */
  isTaken(): boolean;
  /**
   * Resolves in a turn of the event loop that at most `atOnce` requests have, so that others are served in between, however many wait.
   * Owners take turns. Rejects when `signal` is aborted.
   */
  wait(request: Pick<FastifyRequest, "sharer">, signal: AbortSignal): Promise<void>;
}

/** Creates turns that are taken apart from those of others; `atOnce` requests, default one, have the same turn of the event loop. */
export function createTurns(atOnce = 1): Turns {
  const turns = new Shares(atOnce, "firm");
  return {
    isTaken: () => turns.taken > 0,
    async wait({ sharer }, signal) {
      setImmediate(await turns.wait(sharer, signal));
    },
  };
}

const closings = new WeakMap<ServerResponse, AbortSignal>();

/**
 * Returns a signal that is aborted when the client has disconnected or has its response, one for each reply. Fastify's own, of the request, is
 * aborted once its body is read, and never if the client had disconnected before it was asked for.
 */
export function untilClosed({ raw }: Pick<FastifyReply, "raw">): AbortSignal {
  return closings.getOrInsertComputed(raw, () => {
    const closing = new AbortController();
    onClosed(raw, () => closing.abort());
    return closing.signal;
  });
}

const listenersOf = new WeakMap<ServerResponse, (() => void)[]>();

/**
 * Calls `listener` once, when the client has disconnected or has its response, at once if it has. All share one listener of the
 * response: with one each, Node warned of a leak.
 */
export function onClosed(response: ServerResponse, listener: () => void): void {
  if (response.destroyed) return listener();
  const added = listenersOf.get(response);
  if (added !== undefined) return void added.push(listener);
  const listeners = [listener];
  listenersOf.set(response, listeners);
  response.once("close", () => listeners.forEach((each) => each()));
}
