import { ServiceError } from "../../../errors.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { GetOptions } from "../../../net/client.ts";
import type { PartsContext } from "./context.ts";
import { partError } from "./extent.ts";
import { invalidate, endPart, type StoredPart, sizeOf } from "./stored-part.ts";
import type { FetchedPart, FetchOptions, Part } from "./part.ts";
import { createRetryPolicy } from "./retry-policy.ts";
import { createReceiver } from "./receiver.ts";
import { isResumable, ifRangeOf } from "./representation.ts";

/** Does what `Parts.fetch` promises. */
export async function fetchPart(
  held: StoredPart,
  part: Part,
  options: FetchOptions,
  context: PartsContext,
): Promise<FetchedPart> {
  const { signal } = options;
  const { client, journal, checkpoints, room } = context;
  const patience = createRetryPolicy(context.backOffMs, signal);
  const receiver = createReceiver(held, part, options, context);
  await room.reserve(0);
  if (!isSameRange(held.range, part.range)) invalidate(held);
  while (!held.isComplete) {
    signal.throwIfAborted();
    checkpoints.throwFailure();
    if (isAllThere(held)) {
      await endPart(held, journal);
      break;
    }
    const isResume =
      held.size > 0 && held.representation !== null && isResumable(held.representation);
    try {
      const answer = await client.get(part.url, requestOf(held, part, signal, isResume));
      await receiver.receive(answer, isResume);
    } catch (error) {
      signal.throwIfAborted();
      if (!isResume || !isRefusal(error)) await patience.backOff(error, held.size);
      else {
        patience.recordFailure(error, held.size);
        invalidate(held);
      }
      continue;
    }
    if (!held.isComplete)
      patience.recordFailure(partError(part, "its answers get ever shorter"), held.size);
  }
  return {
    path: held.path,
    size: held.size,
    contentType: held.representation?.contentType ?? null,
  };
}

function isSameRange(one: ByteRange | null, other: ByteRange | null): boolean {
  return one?.offset === other?.offset && one?.length === other?.length;
}

/** The process, or the connection, ended right behind the last byte. */
function isAllThere({ representation, range, size }: StoredPart): boolean {
  return representation !== null && sizeOf(range, representation.total) === size;
}

function requestOf(
  { representation, size }: StoredPart,
  { range }: Part,
  signal: AbortSignal,
  isResume: boolean,
): GetOptions {
  const options = { signal, maxBytes: Number.POSITIVE_INFINITY, identity: true };
  if (!isResume) return range === null ? options : { ...options, range };
  const { offset, length } = range ?? { offset: 0 };
  const rest = {
    offset: offset + size,
    ...(length !== undefined && { length: length - size }),
  };
  const ifRange = representation && ifRangeOf(representation);
  return { ...options, range: rest, ...(ifRange !== null && { ifRange }) };
}

/** What there is has no sequel on this server, or none that belongs to it. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof ServiceError &&
    (error.code === "upstream_invalid" || error.upstreamStatus === 416)
  );
}
