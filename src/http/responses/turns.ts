import type { FastifyReply, FastifyRequest } from "fastify";
import { Shares } from "../../async/shares.ts";

/** Reading or writing less JSON takes less than a millisecond, characters. */
export const longJson = 16 * 1024;

/**
 * Creates what lets requests do long work one at a time: the function resolves in a turn of the event loop in which no other one has
 * resolved, so that however many there are, other requests are served in between. Owners take turns. Rejects once the client has disconnected.
 */
export function createTurns(): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const turns = new Shares(1, { isFirm: true });
  return async ({ caller }, reply) => {
    setImmediate(await turns.wait(caller?.name ?? "", untilClosed(reply)));
  };
}

/** Returns a signal that is aborted when the client has disconnected or has its response; that of the request is aborted once its body is read. */
export function untilClosed({ raw }: FastifyReply): AbortSignal {
  const closing = new AbortController();
  raw.once("close", () => closing.abort());
  if (raw.destroyed) closing.abort();
  return closing.signal;
}
