import type { OnReadOpts, Socket } from "node:net";

/** The memory that sockets read into, used again once its reader is done with it. */
export interface ReadBufferPool {
  /** For `net.connect` and `tls.connect`. */
  readonly onread: OnReadOpts;
  /**
   * Takes back what a socket gave, whole and unshared; anything else is left to the garbage collector.
   * The caller must not look at `chunk` any more.
   */
  release(chunk: Uint8Array): void;
}

/** More than a socket's buffer holds as a rule. */
const blockBytes = 256 * 1024;
const maxSpare = 16;
/** A read that fills less of its block is copied, so that what waits does not hold far more than it is. */
const minLentBytes = blockBytes / 4;

/**
 * Memory of a garbage-collected buffer a read is what fast transfers spend their time on: 64 KiB each,
 * beyond V8's own heap, which makes it collect often.
 */
export function createReadBufferPool(): ReadBufferPool {
  const spare: Uint8Array[] = [];
  /** Blocks that a reader has, by their memory, with how much of them was given. */
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
    onread: {
      buffer: () => spare.pop() ?? Buffer.allocUnsafeSlow(blockBytes),
      callback: onBlock,
    },
    release(chunk) {
      const { block, bytes } = lent.get(chunk.buffer) ?? {};
      if (block === undefined || chunk.byteOffset !== 0 || chunk.length !== bytes) return;
      lent.delete(block.buffer);
      if (spare.length < maxSpare) spare.push(block);
    },
  };
}
