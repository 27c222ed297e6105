import { isUpstreamError, ServiceError } from "../../model/errors.ts";

/** A box (ISO/IEC 14496-12 §4.2); all numbers are byte offsets in the buffer or file that has it. */
export interface Box {
  type: string;
  start: number;
  /** Start of the content, after the header. */
  body: number;
  end: number;
}

/** Returns a box of `type` with `parts` as its content, below 4 GiB. */
export function box(type: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const size = parts.reduce((sum, part) => sum + part.length, 8);
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt32BE(size);
  bytes.write(type, 4, "latin1");
  let at = 8;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Returns a box with version and flags (§4.2.2). */
export function fullBox(type: string, version: number, flags: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return box(type, u32(version * 0x1000000 + flags), ...parts);
}

/** Returns a box of user data that says what a track is for (`kind`, §8.10.4), in words of DASH (ISO/IEC 23009-1 §5.8.5.5). */
export function roleData(role: string): Uint8Array {
  return box("udta", fullBox("kind", 0, 0, ascii(`urn:mpeg:dash:role:2011\0${role}\0`)));
}

/** Returns the numbers, 16 bits each, in big-endian order. */
export function u16(...values: number[]): Uint8Array {
  return Uint8Array.from(values.flatMap((value) => [value >>> 8, value]));
}

/** Returns the numbers, 32 bits each, in big-endian order. */
export function u32(...values: number[]): Uint8Array {
  return u32Table(Uint32Array.from(values));
}

/** Returns the numbers in big-endian order. */
export function u32Table(values: Uint32Array): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = viewOf(bytes);
  for (let i = 0; i < values.length; i++) view.setUint32(i * 4, values[i]!);
  return bytes;
}

/** @param values Integers from 0 to 2^53. */
export function u64(...values: number[]): Uint8Array {
  return u32(...values.flatMap((value) => [Math.floor(value / 2 ** 32), value]));
}

/** Returns a byte for each character. */
export const ascii = (text: string): Uint8Array => Buffer.from(text, "latin1");

/** Returns a view of the same bytes. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Yields the boxes from `start` to `end`, in order.
 * @throws ServiceError `upstream_invalid` if a box ends after `end` or is smaller than its own header.
 */
export function* boxesIn(bytes: Uint8Array, start = 0, end = bytes.length): Generator<Box> {
  for (let at = start; at < end;) {
    const found = readBox(bytes, at, end - at);
    yield found;
    at = found.end;
  }
}

/** Returns the box that `bytes` begin with. @throws as `boxesIn` */
export const firstBox = (bytes: Uint8Array): Box => readBox(bytes, 0, bytes.length);

/** Returns the boxes in `parent`: those of a type, or all. @throws as `boxesIn` */
export function childrenOf(bytes: Uint8Array, { body, end }: Box, type?: string): Box[] {
  return [...boxesIn(bytes, body, end)].filter((child) => type === undefined || child.type === type);
}

/** Returns the first child of `parent` with the first type, the first one of that with the second …; undefined if there is none. */
export function findChild(bytes: Uint8Array, parent: Box, ...types: readonly string[]): Box | undefined {
  return types.reduce<Box | undefined>(
    (found, type) => found && boxesIn(bytes, found.body, found.end).find((child) => child.type === type),
    parent,
  );
}

/** Returns what `findChild` does. @throws ServiceError `upstream_invalid` if there is none. */
export function getChild(bytes: Uint8Array, parent: Box, ...types: readonly string[]): Box {
  return types.reduce((outer, type) => {
    const found = findChild(bytes, outer, type);
    if (found === undefined) throw damagedError(`"${outer.type}" has no "${type}" in it`);
    return found;
  }, parent);
}

/**
 * Reads the header of the box at `at`, which must end within the next `left` bytes.
 * @throws ServiceError `upstream_invalid` if it does not, or is smaller than its own header.
 */
export function readBox(bytes: Uint8Array, at: number, left: number): Box {
  if (left < 8) throw damagedError(`${left} bytes are too few for a box`);
  const view = viewOf(bytes);
  const type = typeAt(bytes, at + 4);
  const field = view.getUint32(at);
  const headerBytes = field === 1 ? 16 : 8;
  if (left < headerBytes) throw damagedError(`the box "${type}" ends in the middle of its size`);
  // 1: the size follows in 64 bits; 0: the box extends to the end.
  const size = field === 1 ? view.getUint32(at + 8) * 2 ** 32 + view.getUint32(at + 12) : field === 0 ? left : field;
  if (size < headerBytes || size > left) {
    throw damagedError(`the box "${type}" has a size of ${size} bytes, possible are ${headerBytes} to ${left}`);
  }
  return { type, start: at, body: at + headerBytes, end: at + size };
}

/** Returns the four-character code at `at`, with "?" for what is not printable ASCII. */
export function typeAt(bytes: Uint8Array, at: number): string {
  const view = viewOf(bytes);
  const codes = [0, 1, 2, 3].map((i) => view.getUint8(at + i));
  return String.fromCharCode(...codes.map((code) => (code < 32 || code > 126 ? 63 : code)));
}

/** Returns an `upstream_invalid` error for an MP4 that cannot be read. */
export function damagedError(what: string): ServiceError {
  return new ServiceError("upstream_invalid", `the MP4 cannot be read: ${what}`);
}

/** Returns what `read` returns; undefined if what it reads is damaged: the reader says so, or a number lies outside of the bytes. */
export function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isUpstreamError(error) || error instanceof RangeError) return undefined;
    throw error;
  }
}
