import type { Socket } from "node:net";

export type ReadBufferPool = ReturnType<typeof createReadBufferPool>;

/** As many as a fast transfer over several connections has in use: fewer would be allocated again and again. */
const maxSpare = 64;

/**
 * Creates an empty pool of buffers that sockets read into, reused once their reader has released them. Without it, each read allocates 64 KiB outside of V8's heap, and fast transfers
 * spend most of their time on garbage collection.
 */
export function createReadBufferPool(blockBytes: number) {
  /** Shorter reads are copied, so that a queued chunk does not keep a far larger block in memory. */
  const minLentBytes = blockBytes / 4;
  const spare: Uint8Array[] = [];
  /** Blocks that readers have, by their memory, with the bytes that were read into them. */
  const lent = new WeakMap<ArrayBufferLike, { block: Uint8Array; bytes: number }>();

  function onBlock(this: Socket, bytes: number, block: Uint8Array): boolean {
    if (bytes < minLentBytes) {
      spare.push(block);
      return this.push(Buffer.from(block.subarray(0, bytes)));
    }
    lent.set(block.buffer, { block, bytes });
    return this.push(block.subarray(0, bytes));
  }

  return {
    /** Option of `net.connect` and `tls.connect`. */
    onread: { buffer: () => spare.pop() ?? Buffer.allocUnsafeSlow(blockBytes), callback: onBlock },
    /**
     * Takes back what a socket has emitted, once the last part of it is released; ignores its other parts and other arrays. So a
     * reader that gets it in several parts, as after the headers of a response, must release them in order.
     * The caller must not use `chunk` afterwards.
     */
    release(chunk: Uint8Array): void {
      const { block, bytes } = lent.get(chunk.buffer) ?? {};
      if (block === undefined || chunk.byteOffset + chunk.length !== bytes) return;
      lent.delete(block.buffer);
      if (spare.length < maxSpare) spare.push(block);
    },
  };
}
