import type { HttpResponse } from "../../../net/client.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { type Extent, extentOf, partError, partTruncatedError } from "./extent.ts";
import { openPartWriter, type PartWriter } from "./disk-writes.ts";
import type { Quota } from "./quota.ts";
import { isSameRepresentation, representationOf, withoutQuery } from "./representation.ts";
import type { Repeats } from "./retry-policy.ts";
import type { FetchOptions, Part, StoredPart } from "./stored-part.ts";

/** Resolves with how many bytes may be received from `host` (`URL.host`) now: 1 to `bytes`. Rejects with `signal.reason`. */
export type TakeBytes = (host: string, bytes: number, signal: AbortSignal) => Promise<number>;

/** A part, what is stored of it, and what counts its bytes and those of all other parts. */
export interface PartTransfer {
  stored: StoredPart;
  part: Part;
  options: FetchOptions;
  checkpoints: Checkpoints;
  quota: Quota;
  takeBytes: TakeBytes | undefined;
  repeats: Repeats;
}

/**
 * Writes the part's bytes of a response to its file, and ends the part if it is then complete. `isResume`: only
 * the missing bytes were requested.
 */
export async function receive(response: HttpResponse, isResume: boolean, transfer: PartTransfer): Promise<void> {
  const { stored, part, options, quota } = transfer;
  try {
    const extent = extentOf(response, part, isResume ? stored.representation : null);
    const writer = await openWriter(response, isResume, transfer);
    try {
      checkSize(part, extent.size ?? 0);
      options.onTotal?.(extent.size);
      await quota.reserve(extent.size === null ? 0 : extent.size - stored.size, isKeptTwice(part));
      await write(response, extent, writer, transfer);
    } finally {
      await writer.close();
    }
    if (extent.size === null || stored.size === extent.size) await stored.end();
    else if (response.status !== 206) throw partError(part, "the resource ends too early");
  } catch (error) {
    await response.body[Symbol.asyncIterator]().return?.();
    throw error;
  }
}

/** Continues the file with the rest of its representation; any other response restarts it. */
async function openWriter(
  response: HttpResponse,
  isResume: boolean,
  { stored, part, options, quota, checkpoints }: PartTransfer,
): Promise<PartWriter> {
  const representation = representationOf(response);
  const hooks = {
    onWritten(bytes: number): void {
      stored.size += bytes;
      quota.add(bytes);
      checkpoints.add(stored, bytes);
      options.onBytes?.();
    },
    onDone: response.release,
  };
  if (isResume && response.status === 206) {
    const isMoved = stored.tail.length > 0;
    const before = stored.representation;
    if (before === null || !isSameRepresentation(before, representation, isMoved)) throw changedError(part);
    return openPartWriter(stored.path, stored.size, hooks);
  }
  const writer = await openPartWriter(stored.path, 0, hooks);
  quota.add(-stored.size);
  await stored.begin(part, representation).catch(async (error: unknown) => {
    await writer.close();
    throw error;
  });
  return writer;
}

async function write(
  response: HttpResponse,
  extent: Extent,
  writer: PartWriter,
  { stored, part, quota, takeBytes, options }: PartTransfer,
): Promise<void> {
  const body = takeBytes === undefined ? response.body : receiveSlowly(response, takeBytes, options.signal);
  const from = withoutQuery(part.url);
  const isPartial = response.status === 206;
  let { skip, length: left } = extent;
  for await (const chunk of body) {
    const bytes = chunk.subarray(skip, skip + left);
    if (isPartial && !extent.isLonger && bytes.length < chunk.length) {
      throw partError(part, "the response is longer than the range that it states");
    }
    const skipped = Math.min(skip, chunk.length);
    quota.addSkipped(skipped);
    skip -= skipped;
    left -= bytes.length;
    if (stored.tail.length > 0 && isWholeTail(bytes, stored, part)) await stored.move(from, representationOf(response));
    checkSize(part, stored.size + writer.pending + bytes.length);
    await quota.checkWrite(bytes.length, writer.pending, left, isKeptTwice(part));
    await writer.write(bytes);
    // The rest of the resource is not part of the range.
    if (extent.isLonger && left === 0) break;
  }
  if (isPartial && left > 0) throw partTruncatedError(part, left);
}

const isKeptTwice = ({ isPartialOnly, isToCut }: Part): boolean => isPartialOnly === true || isToCut === true;

function checkSize(part: Part, bytes: number): void {
  const { maxBytes = Infinity } = part;
  if (bytes > maxBytes) throw partError(part, `it has ${bytes} bytes or more, the limit is ${maxBytes}`);
}

/** Yields the bytes of a response as fast as they may be received; meanwhile its connection is paused. */
async function* receiveSlowly(
  { url, body }: HttpResponse,
  takeBytes: TakeBytes,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    for (let rest = chunk; rest.length > 0;) {
      const bytes = await takeBytes(url.host, rest.length, signal);
      yield rest.subarray(0, bytes);
      rest = rest.subarray(bytes);
    }
  }
}

/** Compares the first bytes from another URL with those that the file has. Returns whether that was all of them. */
function isWholeTail(bytes: Uint8Array, stored: StoredPart, part: Part): boolean {
  const length = Math.min(bytes.length, stored.tail.length);
  if (Buffer.compare(bytes.subarray(0, length), stored.tail.subarray(0, length)) !== 0) throw changedError(part);
  stored.tail = stored.tail.subarray(length);
  return stored.tail.length === 0;
}

function changedError(part: Part): Error {
  return partError(part, "the resource has changed during the download");
}
