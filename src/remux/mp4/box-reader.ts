import { type Box, damagedError, viewOf } from "./boxes.ts";

/** Reads the fields of one box in order, never beyond its end. */
export interface BoxReader {
  /** Bytes from here to the end of the box. */
  readonly left: number;
  u8(): number;
  u16(): number;
  u32(): number;
  i32(): number;
  /** Reads a signed 64-bit integer; one beyond 2^53 is an error: no time or offset is that large. */
  i64(): number;
  /** Reads version and flags of a full box. */
  versionAndFlags(): { version: number; flags: number };
  skip(bytes: number): void;
}

/**
 * @param bytes The buffer that `box` points into.
 * @throws ServiceError `upstream_invalid`, from every read beyond the end of the box.
 */
export function createBoxReader(bytes: Uint8Array, box: Box): BoxReader {
  const view = viewOf(bytes);
  let next = box.body;

  function take(count: number): number {
    const at = next;
    if (count > box.end - at) {
      throw damagedError(`the box "${box.type}" ends in the middle of a field`);
    }
    next += count;
    return at;
  }

  const reader: BoxReader = {
    get left() {
      return box.end - next;
    },
    u8: () => view.getUint8(take(1)),
    u16: () => view.getUint16(take(2)),
    u32: () => view.getUint32(take(4)),
    i32: () => view.getInt32(take(4)),
    i64() {
      const at = take(8);
      const value = view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4);
      if (!Number.isSafeInteger(value)) {
        throw damagedError(`"${box.type}" has a number beyond 2^53`);
      }
      return value;
    },
    versionAndFlags() {
      const word = reader.u32();
      return { version: word >>> 24, flags: word & 0xffffff };
    },
    skip(count) {
      take(count);
    },
  };
  return reader;
}
