import { type Box, damagedError, viewOf } from "./boxes.ts";

export type BoxReader = ReturnType<typeof openFullBox>;

/** Returns a reader of the next number in so many pairs of count and number; it returns `after` after the last. */
export function openRunLengths({ u32 }: BoxReader, pairs: number, after: number): () => number {
  let left = pairs;
  let count = 0;
  let value = 0;
  return () => {
    while (count === 0) {
      if (left === 0) return after;
      left--;
      count = u32();
      value = u32();
    }
    count--;
    return value;
  };
}

/** Returns a reader of numbers of 4 bits, the high ones first. */
export function openHalfBytes(reader: BoxReader): () => number {
  let byte: number | null = null;
  return () => {
    const isLow = byte !== null;
    const current = byte ?? reader.u8();
    byte = isLow ? null : current;
    return isLow ? current & 15 : current >> 4;
  };
}

/**
 * Opens a box with version and flags (ISO/IEC 14496-12 §4.2.2), to read its other fields in order, never beyond its end.
 * @param bytes The buffer that `box` points into.
 * @throws ServiceError `upstream_invalid`, from every read beyond the end of the box.
 */
export function openFullBox(bytes: Uint8Array, box: Box) {
  const view = viewOf(bytes);
  let next = box.body;

  function take(count: number): number {
    const at = next;
    if (count > box.end - at) throw damagedError(`the box "${box.type}" ends in the middle of a field`);
    next += count;
    return at;
  }

  function roundedI64(): number {
    const at = take(8);
    return view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4);
  }

  function i64(): number {
    const value = roundedI64();
    if (!Number.isSafeInteger(value)) throw damagedError(`"${box.type}" has a number beyond 2^53`);
    return value;
  }

  const head = view.getUint32(take(4));
  const version = head >>> 24;
  return {
    version,
    flags: head & 0xffffff,
    /** Bytes from here to the end of the box. */
    get left(): number {
      return box.end - next;
    },
    u8: (): number => view.getUint8(take(1)),
    u16: (): number => view.getUint16(take(2)),
    u32: (): number => view.getUint32(take(4)),
    i32: (): number => view.getInt32(take(4)),
    /** Reads a signed 64-bit integer; one beyond 2^53 is an error: no offset or duration is that large. */
    i64,
    /** Reads a number that has 64 bits in version 1 of its box, and else 32. */
    time: (): number => (version === 1 ? i64() : view.getUint32(take(4))),
    /** Reads a time as `time` does; one beyond 2^53, as of live streams in units of 100 ns since 1970, to the nearest number. */
    decodeTime: (): number => (version === 1 ? roundedI64() : view.getUint32(take(4))),
    skip(count: number): void {
      take(count);
    },
  };
}
