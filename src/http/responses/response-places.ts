import type { FastifyReply, FastifyRequest } from "fastify";
import { Shares } from "../../async/shares.ts";
import { onClosed, untilClosed } from "./turns.ts";

/** How long a piece of a response may wait for its client while others wait for a place, milliseconds. */
const patienceMs = 5_000;
const checkMs = 1_000;

/** The place of a response. */
export interface ResponsePlace {
  /** Notes whether a piece of the response waits for the client to read. */
  setUnread(isUnread: boolean): void;
  /** Gives the place back early; otherwise it is when the client has the response, or has left. */
  release(): void;
}

/**
 * Creates places for responses that are in memory until their clients have read them, shared by owners. Further ones wait. While they do, those
 * responses of the same owner of which a piece has waited for its client for 5 s are cut off.
 */
export function createResponsePlaces(total: number) {
  const places = new Shares(total);
  /** Whose responses have waited for their clients, and since when; in the order of these times. */
  const unread = new Map<FastifyReply["raw"], { owner: string; sinceMs: number }>();

  function cutOffUnread(waiting: string): void {
    for (const [response, { owner, sinceMs }] of unread) {
      if (performance.now() - sinceMs < patienceMs) return;
      if (owner === waiting) response.destroy();
    }
  }

  async function untilFree(owner: string, signal: AbortSignal): Promise<() => void> {
    const timer = setInterval(cutOffUnread, checkMs, owner);
    cutOffUnread(owner);
    try {
      return await places.wait(owner, signal);
    } finally {
      clearInterval(timer);
    }
  }

  return {
    /** Resolves with the place for the response to a request; rejects if its client leaves before. */
    async wait({ sharer }: Pick<FastifyRequest, "sharer">, reply: Pick<FastifyReply, "raw">): Promise<ResponsePlace> {
      const { raw } = reply;
      const release = places.take(sharer) ?? (await untilFree(sharer, untilClosed(reply)));
      let hasLeft = false;
      const leave = () => {
        hasLeft = true;
        unread.delete(raw);
        release();
      };
      onClosed(raw, leave);
      return {
        setUnread(isUnread) {
          unread.delete(raw);
          if (isUnread && !hasLeft) unread.set(raw, { owner: sharer, sinceMs: performance.now() });
        },
        release: leave,
      };
    },
  };
}
