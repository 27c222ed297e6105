import { ServiceError } from "../../model/errors.ts";
import type { TrackOutput } from "../track-output.ts";
import type { StreamClock } from "./clock.ts";
import type { PesTime } from "./timestamps.ts";

/** The bytes of an elementary stream, with the times of its packets. */
export interface ElementaryStream {
  /** Bytes that are held. */
  readonly length: number;
  /** Returns all bytes that are held; valid until the next call of another member. */
  view(): Buffer;
  /**
   * Appends `source[from, to)`.
   * @throws ServiceError `upstream_invalid` if more than 32 MiB would be held: no access unit is that large.
   */
  append(source: Buffer, from: number, to: number): void;
  /** Starts a packet, which may have a time. */
  begin(time: PesTime | null): void;
  /** Removes what was appended since the last `begin`. */
  rewind(): void;
  /** Returns the latest time of a packet up to the byte at `offset`, once; `null` if there is none. */
  takeTime(offset: number): PesTime | null;
  /** Drops the first `count` bytes. */
  consume(count: number): void;
}

/** Makes samples of one elementary stream. */
export interface TrackReader {
  /** Reads what is complete; with `isLast` everything. */
  read(isLast: boolean): void;
  /** Bytes were lost: what follows does not continue what is held. */
  skip(): void;
}

export interface TrackReaderOptions<Syntax> {
  stream: ElementaryStream;
  syntax: Syntax;
  clock: StreamClock;
  output: TrackOutput;
  /** Called at each place where media are left out: an access unit that cannot be decoded, damaged bytes between frames. */
  onDrop?: () => void;
  /** BCP 47; `null`: unknown. */
  language: string | null;
}

const maxBytes = 32 * 1024 * 1024;

export function createElementaryStream(): ElementaryStream {
  let bytes = Buffer.allocUnsafeSlow(256 * 1024);
  /** Where the bytes that are held start in `bytes`, and how many they are. */
  let start = 0;
  let length = 0;
  let packetStart = 0;
  let marks: { offset: number; time: PesTime }[] = [];
  /** Moves what is held to the front, into a larger buffer if most of this one is in use. */
  const makeRoom = (needed: number): void => {
    if (needed > maxBytes) {
      throw new ServiceError(
        "upstream_invalid",
        `reading the stream stopped: an access unit has ${needed} bytes or more, the limit is ${maxBytes}`,
      );
    }
    const size = Math.min(maxBytes, Math.max(needed, bytes.length * 2));
    const isTight = needed > bytes.length / 2 && size > bytes.length;
    const target = isTight ? Buffer.allocUnsafeSlow(size) : bytes;
    bytes.copy(target, 0, start, start + length);
    bytes = target;
    start = 0;
  };
  return {
    get length() {
      return length;
    },
    view: () => bytes.subarray(start, start + length),
    append(source, from, to) {
      const count = to - from;
      if (start + length + count > bytes.length) makeRoom(length + count);
      source.copy(bytes, start + length, from, to);
      length += count;
    },
    begin(time) {
      packetStart = length;
      if (time) marks.push({ offset: length, time });
    },
    rewind() {
      length = packetStart;
      marks = marks.filter(({ offset }) => offset < packetStart);
    },
    takeTime(offset) {
      const later = marks.findIndex((mark) => mark.offset > offset);
      const taken = marks.splice(0, later < 0 ? marks.length : later);
      return taken.at(-1)?.time ?? null;
    },
    consume(count) {
      if (count === 0) return;
      start += count;
      length -= count;
      packetStart -= count;
      for (const mark of marks) mark.offset -= count;
    },
  };
}
