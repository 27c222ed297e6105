import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** A file that is open for reading until it is disposed of. */
export interface OpenFile extends Disposable {
  readonly fd: number;
  /** When it was opened, bytes. */
  readonly size: number;
}

/** @throws the file system's own errors. */
export function openFile(path: string): OpenFile {
  const fd = openSync(path, "r");
  try {
    return { fd, size: fstatSync(fd).size, [Symbol.dispose]: () => closeSync(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Fills `buffer` from the start of a file; returns the filled part, shorter if the file is. */
export function readFileStart(path: string, buffer: Buffer): Buffer {
  using file = openFile(path);
  return buffer.subarray(0, readInto(file.fd, buffer, 0));
}

/** Returns up to `length` bytes from `position` on, fewer at the end of the file, and none before its start. */
export function readAt({ fd, size }: ReadFile, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(position < 0 ? 0 : Math.max(0, Math.min(length, size - position)));
  return buffer.subarray(0, readInto(fd, buffer, position));
}

/** Fills `buffer` from `position` of an open file on; returns how many bytes that had for it. */
export function readInto(fd: number, buffer: Buffer, position: number): number {
  let length = 0;
  for (let count = -1; count !== 0 && length < buffer.length; length += count) {
    count = readSync(fd, buffer, length, buffer.length - length, position + length);
  }
  return length;
}

const chunkBytes = 1 << 20;

/** Yields the bytes of a file from `start` to `end`, 1 MiB at a time; each chunk is valid until the next. */
export function* readChunks({ fd }: Pick<OpenFile, "fd">, end: number, start = 0): Generator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, Math.max(0, end - start)));
  for (let at = start; at < end;) {
    const count = readSync(fd, buffer, 0, Math.min(buffer.length, end - at), at);
    if (count === 0) return;
    yield buffer.subarray(0, count);
    at += count;
  }
}

const leastBytes = 64 << 10;
const signatureBytes = 4;

export type FileWindow = ReturnType<typeof createFileWindow>;

export type ReadFile = Pick<OpenFile, "fd" | "size">;

/** Reads a file through a window of 1 MiB, but at first only what is asked for; best from the start to the end. */
export function createFileWindow({ fd, size }: ReadFile) {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, size));
  let start = 0;
  let length = 0;

  function at(position: number): Buffer {
    const end = Math.min(position + leastBytes, size);
    if (position < start || end > start + length) {
      const wanted = length === 0 ? leastBytes : buffer.length;
      start = position;
      length = readInto(fd, buffer.subarray(0, wanted), position);
    }
    return buffer.subarray(Math.min(position - start, length), length);
  }

  return {
    fd,
    size,
    /** Returns the bytes from `position` on, at least 64 KiB or to the end; valid until the next call. */
    at,
    /** Returns where one of the signatures, four bytes each, is first from `from` on; `to` if none is before that. */
    find(signatures: readonly Buffer[], from: number, to: number): number {
      for (let position = from; position + signatureBytes <= to;) {
        const bytes = at(position);
        const places = signatures.map((signature) => bytes.indexOf(signature)).filter((place) => place >= 0);
        if (places.length > 0) return Math.min(to, position + Math.min(...places));
        position += Math.max(1, bytes.length - signatureBytes + 1);
      }
      return to;
    },
  };
}
