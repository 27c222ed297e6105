import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { ServiceError } from "../../../errors.ts";
import { ascii, u32, u64 } from "../boxes.ts";

/** An MP4 file on the disk: the media data (`mdat`), and room for the index in front of it. */
export interface MediaData {
  /** Bytes so far. */
  readonly size: number;
  /** Puts `bytes` behind what is there; gives their place in the media data. */
  append(bytes: Uint8Array): number;
  /**
   * Writes what `headAt` gives for media data that start at that byte, flushes to the disk and closes.
   * Gives the size of the file.
   */
  finish(headAt: (start: number) => Uint8Array): number;
  /** Closes and removes the file; does nothing once it is finished or gone. */
  discard(): void;
}

export interface MediaDataOptions {
  path: string;
  /** Limit of the media data, bytes. */
  maxBytes: number;
  /** How many bytes to leave in front; asked once, when the first 4 MiB are there. */
  reserveBytes: () => number;
}

const bufferBytes = 4 << 20;

/**
 * @throws ServiceError `too_large`, from `append`; everything throws the file system's own errors.
 */
export function createMediaData({ path, maxBytes, reserveBytes }: MediaDataOptions): MediaData {
  const fd = openSync(path, "w+");
  const buffer = Buffer.allocUnsafeSlow(bufferBytes);
  let isOpen = true;
  let isKept = false;
  let start: number | undefined;
  let size = 0;
  let buffered = 0;

  /** Writes to the disk what is in the buffer. */
  function flush(): number {
    start ??= reserveBytes();
    writeAt(fd, buffer.subarray(0, buffered), start + size - buffered);
    buffered = 0;
    return start;
  }

  /** Closed, its number may be another file's by now. */
  function checkOpen(): void {
    if (!isOpen) throw new Error(`${path} is closed`);
  }

  function append(bytes: Uint8Array): number {
    checkOpen();
    const at = size;
    if (at + bytes.length > maxBytes) {
      throw new ServiceError("too_large", `the file would be larger than ${maxBytes} bytes`);
    }
    if (buffered + bytes.length > bufferBytes) flush();
    size += bytes.length;
    if (bytes.length > bufferBytes) {
      writeAt(fd, bytes, start! + at);
    } else {
      buffer.set(bytes, buffered);
      buffered += bytes.length;
    }
    return at;
  }

  function finish(headAt: (start: number) => Uint8Array): number {
    checkOpen();
    const header = mediaDataHeader(size);
    const place = placeBehind(headAt, header.length, start ?? 0);
    start ??= place.start;
    const from = flush();
    if (place.start > from) moveUp(fd, buffer, { from, to: place.start, size });
    writeAt(fd, Buffer.concat([place.head, freeHeader(place.gap)]), 0);
    writeAt(fd, header, place.start - header.length);
    isOpen = false;
    closeSync(fd);
    isKept = true;
    return place.start + size;
  }

  function discard(): void {
    const wasOpen = isOpen;
    isOpen = false;
    try {
      if (wasOpen) closeSync(fd);
    } finally {
      if (!isKept) rmSync(path, { force: true });
      isKept = true;
    }
  }

  return {
    get size() {
      return size;
    },
    append,
    finish,
    discard,
  };
}

/**
 * Where the media data can start so that the head fits in front of it: at `start`, else right behind
 * the head. Between them is nothing or a `free` box of `gap` bytes. (The head may grow with the start:
 * 64-bit places.)
 */
function placeBehind(
  headAt: (start: number) => Uint8Array,
  headerBytes: number,
  start: number,
): { head: Uint8Array; start: number; gap: number } {
  const head = headAt(start);
  const gap = start - headerBytes - head.length;
  if (gap === 0 || gap >= 8) return { head, start, gap };
  return placeBehind(headAt, headerBytes, head.length + headerBytes);
}

/** The file is made longer by `to - from` bytes; what comes last is moved first. */
function moveUp(
  fd: number,
  buffer: Buffer,
  { from, to, size }: { from: number; to: number; size: number },
): void {
  for (let left = size; left > 0;) {
    const block = buffer.subarray(0, Math.min(left, buffer.length));
    left -= block.length;
    readAt(fd, block, from + left);
    writeAt(fd, block, to + left);
  }
}

function readAt(fd: number, into: Uint8Array, position: number): void {
  for (let done = 0; done < into.length;) {
    const count = readSync(fd, into, done, into.length - done, position + done);
    if (count === 0) throw new Error("the file became shorter while it was written");
    done += count;
  }
}

function writeAt(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;) {
    done += writeSync(fd, bytes, done, bytes.length - done, position + done);
  }
}

function mediaDataHeader(size: number): Uint8Array {
  return size + 8 < 2 ** 32
    ? Buffer.concat([u32(size + 8), ascii("mdat")])
    : Buffer.concat([u32(1), ascii("mdat"), u64(size + 16)]);
}

function freeHeader(bytes: number): Uint8Array {
  return bytes === 0 ? u32() : Buffer.concat([u32(bytes), ascii("free")]);
}
