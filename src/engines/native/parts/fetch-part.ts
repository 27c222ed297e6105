import { ServiceError } from "../../../errors.ts";
import type { ByteRange, GetOptions } from "../../../net/client.ts";
import type { PartsContext } from "./context.ts";
import { partFault } from "./extent.ts";
import { discard, endPart, type HeldPart, sizeOf } from "./held-part.ts";
import type { FetchedPart, FetchOptions, Part } from "./part.ts";
import { createPatience } from "./patience.ts";
import { createReceiver } from "./receiver.ts";
import { canGoOn, ifRangeOf } from "./representation.ts";

/** Does what `Parts.fetch` promises. */
export async function fetchPart(
  held: HeldPart,
  part: Part,
  options: FetchOptions,
  context: PartsContext,
): Promise<FetchedPart> {
  const { signal } = options;
  const { client, journal, checkpoints, room } = context;
  const patience = createPatience(context.backOffMs, signal);
  const receiver = createReceiver(held, part, options, context);
  await room.reserve(0);
  if (!isSameRange(held.range, part.range)) discard(held);
  while (!held.isComplete) {
    signal.throwIfAborted();
    checkpoints.throwFailure();
    if (isAllThere(held)) {
      await endPart(held, journal);
      break;
    }
    const isSequel = held.size > 0 && held.of !== null && canGoOn(held.of);
    try {
      const answer = await client.get(part.url, requestOf(held, part, signal, isSequel));
      await receiver.receive(answer, isSequel);
    } catch (error) {
      signal.throwIfAborted();
      if (!isSequel || !isRefusal(error)) await patience.wait(error, held.size);
      else {
        patience.count(error, held.size);
        discard(held);
      }
      continue;
    }
    if (!held.isComplete)
      patience.count(partFault(part, "its answers get ever shorter"), held.size);
  }
  return {
    path: held.path,
    size: held.size,
    contentType: held.of?.contentType ?? null,
  };
}

function isSameRange(one: ByteRange | null, other: ByteRange | null): boolean {
  return one?.offset === other?.offset && one?.length === other?.length;
}

/** The process, or the connection, ended right behind the last byte. */
function isAllThere({ of, range, size }: HeldPart): boolean {
  return of !== null && sizeOf(range, of.total) === size;
}

function requestOf(
  { of, size }: HeldPart,
  { range }: Part,
  signal: AbortSignal,
  isSequel: boolean,
): GetOptions {
  const options = { signal, maxBytes: Number.POSITIVE_INFINITY, identity: true };
  if (!isSequel) return range === null ? options : { ...options, range };
  const { offset, length } = range ?? { offset: 0 };
  const rest = {
    offset: offset + size,
    ...(length !== undefined && { length: length - size }),
  };
  const ifRange = of && ifRangeOf(of);
  return { ...options, range: rest, ...(ifRange !== null && { ifRange }) };
}

/** What there is has no sequel on this server, or none that belongs to it. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof ServiceError &&
    (error.code === "upstream_invalid" || error.upstreamStatus === 416)
  );
}
