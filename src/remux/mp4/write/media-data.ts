import { openSync, rmSync } from "node:fs";
import { ServiceError } from "../../../model/errors.ts";
import { readInto } from "../../open-file.ts";
import { ascii, u32, u64 } from "../boxes.ts";
import { BackgroundWrites, writeAt } from "./background-writes.ts";

interface MediaDataOptions {
  path: string;
  /** Limit of the media data, bytes. */
  maxBytes: number;
  /** Returns how many bytes to reserve in front; called once, when the first 4 MiB have been appended, or by `publish`. */
  reserveBytes: () => number;
  /** Called before the media data are moved up because too little was reserved, and with the bytes afterwards; default: nothing. */
  onMove?: ((by: number | null) => void) | undefined;
}

const bufferBytes = 4 << 20;

/**
 * The media data (`mdat`) of an MP4 file while it is written, with space for the index in front. All
 * functions throw the file system's own errors.
 */
export class MediaData {
  readonly #options: MediaDataOptions;
  readonly #fd: number;
  readonly writes: BackgroundWrites;
  #buffer: Buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #buffered = 0;
  /** Where the media data start in the file. */
  #start: number | undefined;
  #size = 0;
  #isOpen = true;
  #isKept = false;
  #failure: unknown;

  /** Creates or overwrites the file. */
  constructor(options: MediaDataOptions) {
    this.#options = options;
    this.#fd = openSync(options.path, "w+");
    this.writes = new BackgroundWrites(this.#fd);
  }

  /** Bytes so far. */
  get size(): number {
    return this.#size;
  }

  /** Appends `bytes` and returns their offset in the media data. @throws ServiceError `too_large` beyond `maxBytes`. */
  append(bytes: Uint8Array): number {
    this.#checkOpen();
    const { maxBytes } = this.#options;
    const at = this.#size;
    if (at + bytes.length > maxBytes) {
      throw new ServiceError("too_large", `the file would be larger than ${maxBytes} bytes`);
    }
    if (this.#buffered + bytes.length > bufferBytes) this.#flush();
    this.#size += bytes.length;
    if (bytes.length > bufferBytes) {
      writeAt(this.#fd, bytes, this.#start! + at);
    } else {
      this.#buffer.set(bytes, this.#buffered);
      this.#buffered += bytes.length;
    }
    return at;
  }

  /** Resolves once all bytes so far are in the file; returns where the media data start in it. */
  async publish(): Promise<number> {
    this.#checkOpen();
    const start = this.#flush();
    await this.writes.finished();
    return start;
  }

  /**
   * Writes the boxes that `headAt` returns for media data that start at this byte of the file, and closes
   * the file. Returns its size. After `drain` it needs a `settle`.
   */
  finish(headAt: (start: number) => Uint8Array): number {
    this.#checkOpen();
    const size = this.#size;
    const header = mediaDataHeader(size);
    const layout = layOut(headAt, header.length, this.#start ?? 0);
    this.#start ??= layout.start;
    const from = this.#flush();
    if (layout.start > from) this.#moveUp(from, layout.start);
    writeAt(this.#fd, Buffer.concat([layout.head, freeHeader(layout.gap)]), 0);
    writeAt(this.#fd, header, layout.start - header.length);
    this.#isOpen = false;
    this.writes.close();
    this.#isKept = true;
    return layout.start + size;
  }

  /** Closes and removes the file; does nothing after `finish` or an earlier call. @param failure What later calls throw. */
  discard(failure?: unknown): void {
    this.#failure ??= failure;
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    try {
      if (wasOpen) this.writes.close();
    } finally {
      if (!this.#isKept) rmSync(this.#options.path, { force: true });
      this.#isKept = true;
    }
  }

  #moveUp(from: number, to: number): void {
    const { onMove } = this.#options;
    onMove?.(null);
    moveUp(this.#fd, this.#buffer, { from, to, size: this.#size });
    onMove?.(to - from);
  }

  #checkOpen(): void {
    if (!this.#isOpen) throw this.#failure ?? new Error(`${this.#options.path} is closed`);
  }

  /** Writes the buffer to the file; returns where the media data start. */
  #flush(): number {
    const start = (this.#start ??= this.#options.reserveBytes());
    const position = start + this.#size - this.#buffered;
    this.#buffer = this.writes.write(this.#buffer, this.#buffered, position);
    this.#buffered = 0;
    return start;
  }
}

/**
 * Returns where the media data start so that the head fits in front of them: at `start` if possible, else at a later
 * byte, as data that are written can only be moved up. Between them is nothing or a `free` box of `gap` bytes. (The head can
 * grow with the start: 64-bit offsets.)
 */
function layOut(
  headAt: (start: number) => Uint8Array,
  headerBytes: number,
  start: number,
): { head: Uint8Array; start: number; gap: number } {
  const head = headAt(start);
  const gap = start - headerBytes - head.length;
  if (gap === 0 || gap >= 8) return { head, start, gap };
  // A box has at least 8 bytes.
  return layOut(headAt, headerBytes, gap > 0 ? start + 8 : head.length + headerBytes);
}

/** Moves the media data up by `to - from` bytes, the last block first. */
function moveUp(fd: number, buffer: Buffer, { from, to, size }: { from: number; to: number; size: number }): void {
  for (let left = size; left > 0;) {
    const block = buffer.subarray(0, Math.min(left, buffer.length));
    left -= block.length;
    const count = readInto(fd, block, from + left);
    if (count < block.length) throw new Error("the file became shorter while it was written");
    writeAt(fd, block, to + left);
  }
}

function mediaDataHeader(size: number): Uint8Array {
  return size + 8 < 2 ** 32
    ? Buffer.concat([u32(size + 8), ascii("mdat")])
    : Buffer.concat([u32(1), ascii("mdat"), u64(size + 16)]);
}

function freeHeader(bytes: number): Uint8Array {
  return bytes === 0 ? new Uint8Array() : Buffer.concat([u32(bytes), ascii("free")]);
}
