import { ServiceError } from "../../errors.ts";

/** Bytes of one stream as they come out of its packets, with the times that were stated between them. */
export interface ElementaryStream {
  readonly length: number;
  /** All bytes that are held; good until the next call of another member. */
  view(): Buffer;
  /**
   * Adds `source[from, to)`.
   * @throws ServiceError `upstream_invalid` where more than 32 MiB would be held: no access unit is
   * that large.
   */
  append(source: Uint8Array, from: number, to: number): void;
  /** A packet begins here: what follows may have a time, and may have to be taken back. */
  begin(time: PesTime | null): void;
  /** Takes back what came since the last `begin`. */
  rewind(): void;
  /** The latest time that was stated up to the byte at `offset`, for what begins there; once. */
  takeTime(offset: number): PesTime | null;
  /** The earliest time that waits. */
  peekTime(): PesTime | null;
  /** Forgets the first `count` bytes. */
  consume(count: number): void;
}

/** Ticks of 1/90000 s, modulo 2^33. */
export interface PesTime {
  pts: number;
  dts: number;
}

const maxBytes = 32 * 1024 * 1024;

export function createElementaryStream(): ElementaryStream {
  let bytes = Buffer.allocUnsafeSlow(64 * 1024);
  let length = 0;
  let beginning = 0;
  let marks: { offset: number; time: PesTime }[] = [];
  const grow = (needed: number): void => {
    if (needed > maxBytes) {
      throw new ServiceError(
        "upstream_invalid",
        `reading the stream stopped: an access unit has ${needed} bytes or more, the limit is ${maxBytes}`,
      );
    }
    const larger = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(needed, bytes.length * 2)));
    bytes.copy(larger, 0, 0, length);
    bytes = larger;
  };
  return {
    get length() {
      return length;
    },
    view: () => bytes.subarray(0, length),
    append(source, from, to) {
      const end = length + to - from;
      if (end > bytes.length) grow(end);
      bytes.set(source.subarray(from, to), length);
      length = end;
    },
    begin(time) {
      beginning = length;
      if (time) marks.push({ offset: length, time });
    },
    rewind() {
      length = beginning;
      marks = marks.filter(({ offset }) => offset < beginning);
    },
    takeTime(offset) {
      const later = marks.findIndex((mark) => mark.offset > offset);
      const taken = marks.splice(0, later < 0 ? marks.length : later);
      return taken.at(-1)?.time ?? null;
    },
    peekTime: () => marks[0]?.time ?? null,
    consume(count) {
      if (count === 0) return;
      bytes.copyWithin(0, count, length);
      length -= count;
      beginning -= count;
      for (const mark of marks) mark.offset -= count;
    },
  };
}
