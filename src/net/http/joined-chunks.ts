import type { Readable } from "node:stream";

/** Bytes of a body that may wait for their reader, beyond those of one read: chunks of one byte take over a hundred each. */
export const maxWaitingBytes = 4 * 1024;

/** Yields the chunks of a body, joined if several wait: a server can make them as short as a byte, and each one takes its reader 10 µs. */
export async function* joinedChunks(source: Readable): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of source as AsyncIterable<Buffer>) {
    const others = source.readableLength > 0 ? (source.read(source.readableLength) as Buffer | null) : null;
    yield others === null ? chunk : Buffer.concat([chunk, others]);
  }
}
