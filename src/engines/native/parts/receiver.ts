import type { HttpResponse } from "../../../net/client.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { createCutter, type Extent, extentOf, partError, partTruncatedError } from "./extent.ts";
import type { Journal } from "./journal.ts";
import { openPartWriter, type PartWriter } from "./part-writer.ts";
import type { FetchOptions, Part } from "./part.ts";
import type { Quota } from "./quota.ts";
import { isSameRepresentation, representationOf, withoutQuery } from "./representation.ts";
import { beginPart, endPart, movePart, type StoredPart } from "./stored-part.ts";

export interface ReceiverDeps {
  journal: Journal;
  checkpoints: Checkpoints;
  quota: Quota;
}

/**
 * Returns a function that writes the part's bytes of a response to its file, and ends the part if it is then
 * complete. `isResume`: only the missing bytes were requested.
 */
export function createReceiver(
  stored: StoredPart,
  part: Part,
  { onTotal, onBytes }: FetchOptions,
  { journal, checkpoints, quota }: ReceiverDeps,
): (response: HttpResponse, isResume: boolean) => Promise<void> {
  function onWritten(bytes: number): void {
    stored.size += bytes;
    quota.add(bytes);
    checkpoints.add(stored, bytes);
    onBytes?.();
  }

  const from = withoutQuery(part.url);
  const changedError = () => partError(part, "the resource has changed during the download");

  /** The first bytes from another URL must be those that the file has. */
  async function compare(bytes: Uint8Array, response: HttpResponse): Promise<void> {
    const length = Math.min(bytes.length, stored.tail.length);
    if (Buffer.compare(bytes.subarray(0, length), stored.tail.subarray(0, length)) !== 0) {
      throw changedError();
    }
    stored.tail = stored.tail.subarray(length);
    if (stored.tail.length > 0) return;
    await movePart(stored, from, representationOf(response), journal);
  }

  async function openWriter(response: HttpResponse, isResume: boolean): Promise<PartWriter> {
    const representation = representationOf(response);
    const hooks = { onWritten, onDone: response.release };
    if (isResume && response.status === 206) {
      if (
        stored.representation === null ||
        !isSameRepresentation(stored.representation, representation, stored.from !== from)
      ) {
        throw changedError();
      }
      return openPartWriter(stored.path, stored.size, hooks);
    }
    const writer = await openPartWriter(stored.path, 0, hooks);
    quota.add(-stored.size);
    await beginPart(stored, part, representation, journal).catch(async (error: unknown) => {
      await writer.close();
      throw error;
    });
    return writer;
  }

  async function write(response: HttpResponse, extent: Extent, writer: PartWriter): Promise<void> {
    const isPartial = response.status === 206;
    const cutter = createCutter(extent, part, isPartial);
    for await (const chunk of response.body) {
      const bytes = cutter.cut(chunk);
      if (stored.from !== from) await compare(bytes, response);
      await quota.checkWrite(bytes.length, writer.pending);
      await writer.write(bytes);
      // The rest of the resource is not part of the range.
      if (!isPartial && part.range !== null && cutter.left === 0) break;
    }
    if (isPartial && cutter.left > 0) throw partTruncatedError(part, cutter.left);
  }

  return async (response, isResume) => {
    try {
      const extent = extentOf(response, part);
      const writer = await openWriter(response, isResume);
      try {
        onTotal?.(extent.size);
        await quota.reserve(extent.size === null ? 0 : extent.size - stored.size);
        await write(response, extent, writer);
      } finally {
        await writer.close();
      }
      if (extent.size === null || stored.size === extent.size) await endPart(stored, journal);
      else if (response.status !== 206) throw partError(part, "the resource ends too early");
    } catch (error) {
      await response.body[Symbol.asyncIterator]().return?.();
      throw error;
    }
  };
}
