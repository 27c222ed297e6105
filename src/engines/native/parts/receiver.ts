import type { HttpResponse } from "../../../net/client.ts";
import type { PartsContext } from "./context.ts";
import { createCutter, type Extent, extentOf, partTruncatedError, partError } from "./extent.ts";
import { beginPart, endPart, type StoredPart } from "./stored-part.ts";
import type { FetchOptions, Part } from "./part.ts";
import { openPartWriter, type PartWriter } from "./part-writer.ts";
import { isSameRepresentation, representationOf } from "./representation.ts";

/** Puts the bytes of answers into a part's file. */
export interface Receiver {
  /**
   * Takes what `answer` holds of the part, and ends the part where that was the last of it.
   * `isSequel`: it was asked for what is missing.
   */
  receive(answer: HttpResponse, isSequel: boolean): Promise<void>;
}

export function createReceiver(
  held: StoredPart,
  part: Part,
  { onResponse, onBytes }: FetchOptions,
  { journal, checkpoints, room }: PartsContext,
): Receiver {
  function onWritten(bytes: number): void {
    held.size += bytes;
    room.add(bytes);
    checkpoints.note(held, bytes);
    onBytes?.();
  }

  async function open(answer: HttpResponse, isSequel: boolean): Promise<PartWriter> {
    const of = representationOf(answer);
    const hooks = { onWritten, onDone: answer.release };
    if (isSequel && answer.status === 206) {
      if (held.representation === null || !isSameRepresentation(held.representation, of)) {
        throw partError(part, "the resource has changed while it was fetched");
      }
      return openPartWriter(held.path, held.size, hooks);
    }
    const writer = await openPartWriter(held.path, 0, hooks);
    room.add(-held.size);
    await beginPart(held, part.range, of, journal).catch(async (error: unknown) => {
      await writer.close();
      throw error;
    });
    return writer;
  }

  async function take(answer: HttpResponse, extent: Extent, writer: PartWriter): Promise<void> {
    const isWhole = answer.status !== 206;
    const cutter = createCutter(extent, part, isWhole);
    for await (const chunk of answer.body) {
      const bytes = cutter.cut(chunk);
      await room.checkWrite(bytes.length, writer.pending);
      await writer.write(bytes);
      // The rest of a resource of which a range was wanted.
      if (isWhole && part.range !== null && cutter.left === 0) break;
    }
    if (!isWhole && cutter.left > 0) throw partTruncatedError(part, cutter.left);
  }

  async function transfer(answer: HttpResponse, isSequel: boolean, extent: Extent): Promise<void> {
    const writer = await open(answer, isSequel);
    try {
      onResponse?.({ total: extent.size, contentType: held.representation?.contentType ?? null });
      await room.reserve(extent.size === null ? 0 : extent.size - held.size);
      await take(answer, extent, writer);
    } finally {
      await writer.close();
    }
  }

  return {
    async receive(answer, isSequel) {
      try {
        const extent = extentOf(answer, part);
        await transfer(answer, isSequel, extent);
        if (extent.size === null || held.size === extent.size) await endPart(held, journal);
        else if (answer.status !== 206) throw partError(part, "the resource ends before");
      } catch (error) {
        await answer.body[Symbol.asyncIterator]().return?.();
        throw error;
      }
    },
  };
}
