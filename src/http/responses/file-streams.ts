import type { FileHandle } from "node:fs/promises";
import { Socket } from "node:net";
import { Readable } from "node:stream";
import { callbackify } from "node:util";
import type { FastifyReply, FastifyRequest } from "fastify";
import { inUseMs } from "../../files/files.ts";
import type { IntRange } from "../../net/byte-range.ts";
import { StreamBrokenError } from "../../files/stream-run.ts";
import { createTurns, untilClosed } from "./turns.ts";

/** Reads files for responses. */
export interface FileStreams {
  /**
   * Returns the bytes of `range`, which the file must have; closes `handle` at the end. Calls `keep` every 20 s
   * until then, however slowly the client reads. Fails ten minutes after `keep` has begun to return false, as the file was removed: a client
   * that reads a byte now and then would hold its space for days, which counts for no owner.
   */
  open(handle: FileHandle, range: IntRange, keep: () => Promise<boolean>, recipient: Recipient): Readable;
  /** Returns the bytes that `source` reads, one chunk after the other; closes it at the end. Calls `keep`, and fails, as `open` does. */
  follow(source: ChunkSource, recipient: Recipient, keep: () => Promise<boolean>): Readable;
}

/** Who gets the bytes of a stream. */
export interface Recipient extends Pick<FastifyRequest, "sharer"> {
  /** Aborted when no further ones are needed. */
  closed: AbortSignal;
  /** Whether no chunk that was returned is still needed: its memory is used again. */
  isSent(): boolean;
}

interface ChunkSource {
  /** Reads the next bytes into this memory; returns how many they are, at least 1, or `null`: there are no more. */
  read(into: Buffer): Promise<number | null>;
  close(): Promise<void>;
}

/** What the streams may read ahead of their clients in all, bytes: few get large buffers, many small ones. */
const totalBytes = 2 * 1024 * 1024;
/** Chunks of a quarter of that take twice the processor time to read and send. */
const maxChunkBytes = 512 * 1024;
const minChunkBytes = 8 * 1024;

/**
 * Chunks that are read in one turn of the event loop: with a thousand streams, each turn would take as long as it takes to send a
 * thousand, and a turn accepts one connection.
 */
const readsAtOnce = 8;

const keepEveryMs = inUseMs / 3;
const afterRemovalMs = 600_000;

/**
 * Creates streams that hold one chunk each, which is read when the client has taken the one before. A
 * stream of Node's would hold two. `onRead` gets the size of each chunk.
 */
export function createFileStreams(onRead: (bytes: number) => void = () => {}): FileStreams {
  let openStreams = 0;
  const turns = createTurns(readsAtOnce);

  function follow({ read, close }: ChunkSource, recipient: Recipient, keep: () => Promise<boolean>): Readable {
    openStreams += 1;
    const endKeeping = keepUntilRemoved(keep, () => stream.destroy(new Error("its file was removed a while ago")));
    let memory = Buffer.alloc(0);
    async function readChunk(): Promise<Uint8Array | null> {
      await turns.wait(recipient, recipient.closed);
      const size = Math.min(maxChunkBytes, Math.max(minChunkBytes, Math.floor(totalBytes / openStreams)));
      // To collect the garbage would take more time than to read and send it. Not part of a shared pool: that would keep the whole pool.
      const isFree = memory.length === size && stream.readableLength === 0 && recipient.isSent();
      if (!isFree) memory = Buffer.allocUnsafeSlow(size);
      const count = await read(memory);
      if (count === null) return null;
      onRead(count);
      return memory.subarray(0, count);
    }
    const stream = streamChunks(readChunk, () => {
      openStreams -= 1;
      endKeeping();
      return close();
    });
    return stream;
  }

  return {
    open(handle, { start, end }, keep, recipient) {
      let position = start;
      async function read(into: Buffer): Promise<number | null> {
        const size = Math.min(into.length, end + 1 - position);
        if (size <= 0) return null;
        const { bytesRead } = await handle.read(into, 0, size, position);
        if (bytesRead === 0) throw new Error(`the file ends at byte ${position} of ${end + 1}`);
        position += bytesRead;
        return bytesRead;
      }
      return follow({ read, close: () => handle.close() }, recipient, keep);
    },
    follow,
  };
}

/** Calls `keep` until the returned function is called; `onEnd` once it has returned false for `afterRemovalMs`. */
function keepUntilRemoved(keep: () => Promise<boolean>, onEnd: () => void): () => void {
  let removedMs = 0;
  const keeping = setInterval(() => void check(), keepEveryMs);
  async function check(): Promise<void> {
    if (await keep()) return;
    removedMs += keepEveryMs;
    if (removedMs >= afterRemovalMs) onEnd();
  }
  return () => clearInterval(keeping);
}

/**
 * Returns a stream of the chunks that `next` resolves with, `null` after the last one. Unlike that of `Readable.from`, it asks for none
 * before the one before has been taken. Calls `close` at the end.
 */
export function streamChunks(next: () => Promise<Uint8Array | null>, close: () => Promise<unknown>): Readable {
  return new Readable({
    highWaterMark: 0,
    read() {
      callbackify(next)((error, chunk) => {
        if (error === null) this.push(chunk);
        else this.destroy(error);
      });
    },
    destroy(error, done) {
      callbackify(close)((failure) => done(error ?? failure));
    },
  });
}

/** Returns the client of a request. */
export function recipientOf({ sharer }: Pick<FastifyRequest, "sharer">, reply: Pick<FastifyReply, "raw">): Recipient {
  const { raw } = reply;
  // What the system has taken of a response to a connection.
  const isSent = () => raw.socket instanceof Socket && raw.writableLength === 0;
  return { sharer, closed: untilClosed(reply), isSent };
}

/**
 * Resets the connection of a response that has begun and cannot be completed. ffmpeg takes its mere end, between two fragments, for the end
 * of the film, and says nothing.
 */
export function resetConnection({ socket, headersSent }: FastifyReply["raw"]): void {
  if (headersSent && socket instanceof Socket) socket.resetAndDestroy();
}

/**
 * Parses a `Range` header for a file of `size` bytes (RFC 9110 §14.1.2). Returns `undefined` if the whole
 * file is to be sent: the header is invalid or has another unit or several ranges, which §14.2 lets a
 * server ignore; `"unsatisfiable"` if the file has no byte in the range.
 */
export function parseRange(header: string, size: number): IntRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header) ?? [];
  if (first === "") {
    if (last === "") return undefined;
    const length = Math.min(Number(last), size);
    if (Number(last) === 0) return "unsatisfiable";
    // Content-Range cannot express a range of an empty file.
    return size === 0 ? undefined : { start: size - length, end: size - 1 };
  }
  if (last !== "" && Number(last) < Number(first)) return undefined;
  if (Number(first) >= size) return "unsatisfiable";
  return { start: Number(first), end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}

/**
 * Returns a `read` of a stream that is said to have so many bytes. The last one comes only with the end, `null` of `read`: as the response
 * states its length, a client that has all bytes takes it for complete.
 *
 * @throws StreamBrokenError if it has more or fewer bytes
 */
export function withStatedLength(read: ChunkSource["read"], total: number): ChunkSource["read"] {
  let left = total;
  let last: number | undefined;
  return async function readNext(into): Promise<number | null> {
    const count = await read(into);
    if (count === null) {
      if (left > 0) throw new StreamBrokenError(`the stream has ${total - left} bytes of ${total}`);
      if (last === undefined) return null;
      into.writeUInt8(last);
      last = undefined;
      return 1;
    }
    left -= count;
    if (left < 0) throw new StreamBrokenError(`the stream has more than ${total} bytes`);
    if (left > 0) return count;
    last = into.readUInt8(count - 1);
    return count === 1 ? readNext(into) : count - 1;
  };
}
