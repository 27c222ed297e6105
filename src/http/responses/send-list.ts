import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { Shares } from "../../async/shares.ts";
import { untilClosed } from "./turns.ts";

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
  /** Places of long lists whose items stay in memory until the client has read them, shared by owners. Those of others are read again. */
  kept: Shares;
  /** Returns what reads an item again, without keeping it; that returns undefined if the item is to be left out. */
  reread: (item: T) => () => Promise<T | undefined>;
}

/**
 * Sends a list as JSON, without ever having a long one as one string: of that, each further piece is written in a turn of its own. Returns
 * whether it is long.
 */
export function sendList<T>(reply: FastifyReply, list: JsonList<T>): boolean {
  const { start, items, serialize, end, untilTurn } = list;
  let first = start;
  let taken = 0;
  for (; taken < items.length && first.length <= maxAtOnceLength; taken += 1) {
    first += `${taken === 0 ? "" : ","}${serialize(items[taken] as T)}`;
  }
  const isLong = taken < items.length;
  reply.type("application/json; charset=utf-8");
  if (isLong) {
    const isKept = keep(reply, list.kept);
    const read: (item: T) => () => T | Promise<T | undefined> = isKept ? (item) => () => item : list.reread;
    const rest = items.slice(taken).map((item) => read(item));
    reply.send(Readable.from(writeLong(first, rest, { serialize, end, untilTurn })));
  } else reply.send(first + end);
  return isLong;
}

/** Returns whether there is a place for the list, which it then has until the client has read it. */
function keep(reply: FastifyReply, kept: Shares): boolean {
  const release = kept.take(reply.request.sharer);
  const closed = untilClosed(reply);
  closed.addEventListener("abort", () => release?.());
  if (closed.aborted) release?.();
  return release !== undefined;
}

async function* writeLong<T>(
  first: string,
  rest: readonly (() => T | Promise<T | undefined>)[],
  { serialize, end, untilTurn }: Pick<JsonList<T>, "serialize" | "end" | "untilTurn">,
) {
  yield first;
  let piece = "";
  await untilTurn();
  for (const read of rest) {
    if (piece.length > maxAtOnceLength) {
      yield piece;
      piece = "";
      await untilTurn();
    }
    const item = await read();
    if (item !== undefined) piece += `,${serialize(item)}`;
  }
  yield piece;
  yield end;
}
