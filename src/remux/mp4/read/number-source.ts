import { fstatSync } from "node:fs";
import { type Box, damagedError, viewOf } from "../boxes.ts";
import { readFully } from "./file-boxes.ts";

/** Unsigned numbers at any position of a file or of bytes in memory. */
export interface NumberSource {
  /** Bytes. */
  readonly size: number;
  u8(at: number): number;
  u16(at: number): number;
  u32(at: number): number;
  /** Returns a source of the same numbers with its own, larger window, to read a table in order. */
  openTable(): NumberSource;
}

/** For scattered numbers, and for tables. */
const windowBytes = 4 * 1024;
const tableWindowBytes = 64 * 1024;

/**
 * Returns the numbers in an open file. Memory: 4 KiB, and 64 KiB for each table.
 *
 * @throws ServiceError `upstream_invalid`, from every read outside the file; the file system's own errors.
 */
export function numbersInFile(fd: number): NumberSource {
  const load = (start: number, length: number) => readFully(fd, Buffer.allocUnsafe(length), start);
  return createSource(fstatSync(fd).size, windowBytes, load);
}

/**
 * @param size Of the file that the bytes are of, if it has more: those are not read; default: it has not.
 * @throws ServiceError `upstream_invalid`, from every read outside `bytes`.
 */
export function numbersIn(bytes: Uint8Array, size = bytes.length): NumberSource {
  return createSource(size, windowBytes, (start) => bytes.subarray(start));
}

function createSource(
  size: number,
  loadBytes: number,
  load: (start: number, length: number) => Uint8Array,
): NumberSource {
  let start = 0;
  let view: DataView = new DataView(new ArrayBuffer(0));
  const read = (at: number, length: 1 | 2 | 4): number => {
    if (at < start || at + length > start + view.byteLength) {
      if (at < 0 || at + length > size) throw damagedError(`it has no ${length} bytes at ${at}`);
      view = viewOf(load(at, Math.min(loadBytes, size - at)));
      start = at;
    }
    const index = at - start;
    if (length === 4) return view.getUint32(index);
    return length === 2 ? view.getUint16(index) : view.getUint8(index);
  };
  return {
    size,
    u8: (at) => read(at, 1),
    u16: (at) => read(at, 2),
    u32: (at) => read(at, 4),
    openTable: () => createSource(size, tableWindowBytes, load),
  };
}

/** Returns the box at `start`; undefined if there is none that ends by `end`. */
export function boxAt(source: NumberSource, start: number, end: number): Box | undefined {
  if (end - start < 8) return undefined;
  const field = source.u32(start);
  const type = codeAt(source, start + 4);
  const body = start + (field === 1 ? 16 : 8);
  if (body > end) return undefined;
  const size =
    field === 1 ? source.u32(start + 8) * 2 ** 32 + source.u32(start + 12) : field === 0 ? end - start : field;
  return start + size < body || start + size > end ? undefined : { type, start, body, end: start + size };
}

/** Yields the boxes from `body` to `end`, of one type or of all; up to one that ends elsewhere. */
export function* childBoxes(
  source: NumberSource,
  { body, end }: Pick<Box, "body" | "end">,
  type?: string,
): Generator<Box, undefined> {
  for (let box = boxAt(source, body, end); box !== undefined; box = boxAt(source, box.end, end)) {
    if (type === undefined || box.type === type) yield box;
  }
}

/** Returns the four characters at `at`. */
export function codeAt(source: NumberSource, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((offset) => source.u8(at + offset)));
}
