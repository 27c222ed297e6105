import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { ResponsePlace } from "./response-places.ts";

/** What is written in one turn of the event loop, characters; more only if it is a single item. */
const maxAtOnceLength = 64 * 1024;

interface JsonList<T> {
  /** JSON before the items. */
  start: string;
  items: readonly T[];
  serialize: (item: T) => string;
  /** JSON after the items. */
  end: string;
  /** Resolves when the response may go on: as `wait` of `Turns`. */
  untilTurn: () => Promise<void>;
  /** Given back at once if the list is short. */
  place: ResponsePlace;
}

/**
 * Sends a list as JSON, without ever having a long one as one string: of that, each further piece is written in a turn of its own. Returns
 * whether it is longer than a piece, also by its only item.
 */
export function sendList<T>(reply: FastifyReply, list: JsonList<T>): boolean {
  const { start, items, serialize, end, untilTurn, place } = list;
  let taken = 0;
  function nextPiece(): string {
    let piece = "";
    for (; taken < items.length && piece.length <= maxAtOnceLength; taken += 1) {
      piece += `${taken === 0 ? "" : ","}${serialize(items[taken] as T)}`;
    }
    return piece;
  }
  async function* written(first: string) {
    let piece = first;
    for (;;) {
      place.setUnread(true);
      yield piece;
      if (taken === items.length) break;
      place.setUnread(false);
      await untilTurn();
      piece = nextPiece();
    }
    yield end;
  }
  const first = start + nextPiece();
  const isWhole = taken === items.length;
  if (isWhole) place.release();
  reply.type("application/json; charset=utf-8").send(isWhole ? first + end : Readable.from(written(first)));
  return !isWhole || first.length > maxAtOnceLength;
}
