import { type Box, damaged, viewOf } from "./boxes.ts";

/** Reads the fields of one box in order and never beyond its end. */
export interface BoxReader {
  readonly left: number;
  u8(): number;
  u16(): number;
  i16(): number;
  u32(): number;
  i32(): number;
  /** A 64-bit whole number, signed; beyond 2^53 it is no plausible time or place. */
  i64(): number;
  /** Version and flags of a full box. */
  versionAndFlags(): { version: number; flags: number };
  skip(bytes: number): void;
}

/** @throws ServiceError `upstream_invalid`, from every read that goes beyond the end of the box. */
export function createBoxReader(piece: Uint8Array, box: Box): BoxReader {
  const view = viewOf(piece);
  let next = box.body;

  function take(bytes: number): number {
    const at = next;
    if (bytes > box.end - at) throw damaged(`the box "${box.type}" ends in the middle of a field`);
    next += bytes;
    return at;
  }

  const reader: BoxReader = {
    get left() {
      return box.end - next;
    },
    u8: () => view.getUint8(take(1)),
    u16: () => view.getUint16(take(2)),
    i16: () => view.getInt16(take(2)),
    u32: () => view.getUint32(take(4)),
    i32: () => view.getInt32(take(4)),
    i64() {
      const at = take(8);
      const value = view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4);
      if (!Number.isSafeInteger(value)) throw damaged(`"${box.type}" has a number beyond 2^53`);
      return value;
    },
    versionAndFlags() {
      const word = reader.u32();
      return { version: word >>> 24, flags: word & 0xffffff };
    },
    skip(bytes) {
      take(bytes);
    },
  };
  return reader;
}
