import { ServiceError } from "../../model/errors.ts";
import type { TrackOutput } from "../track-output.ts";
import type { StreamClock } from "./clock.ts";
import type { PesTime } from "./timestamps.ts";

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

/** The bytes of an elementary stream, with the times of its packets. */
export class ElementaryStream {
  #bytes = Buffer.allocUnsafeSlow(256 * 1024);
  /** Where the bytes that are held start in `#bytes`, and how many they are. */
  #start = 0;
  #length = 0;
  #packetStart = 0;
  /** How many bytes were dropped before those that are held. */
  #dropped = 0;
  /** Times of packets, in the order in which these begin; `at` counts all bytes of the stream. Those before `#nextMark` are taken. */
  #marks: { at: number; time: PesTime }[] = [];
  #nextMark = 0;

  /** Bytes that are held. */
  get length(): number {
    return this.#length;
  }

  /** Returns all bytes that are held; valid until the next call of another member. */
  view(): Buffer {
    return this.#bytes.subarray(this.#start, this.#start + this.#length);
  }

  /**
   * Appends `source[from, to)`.
   * @throws ServiceError `upstream_invalid` if more than 32 MiB would be held: no access unit is that large.
   */
  append(source: Buffer, from: number, to: number): void {
    const length = this.#length + to - from;
    if (this.#start + length > this.#bytes.length) this.#reserve(length);
    source.copy(this.#bytes, this.#start + this.#length, from, to);
    this.#length = length;
  }

  /** Starts a packet, which may have a time. */
  begin(time: PesTime | null): void {
    this.#packetStart = this.#length;
    if (time) this.#marks.push({ at: this.#dropped + this.#length, time });
  }

  /** Removes what was appended since the last `begin`. */
  rewind(): void {
    this.#length = this.#packetStart;
    const end = this.#dropped + this.#packetStart;
    while ((this.#marks.at(-1)?.at ?? -1) >= end) this.#marks.pop();
    this.#nextMark = Math.min(this.#nextMark, this.#marks.length);
  }

  /** Returns the latest time of a packet up to the byte at `offset`, once; `null` if there is none. */
  takeTime(offset: number): PesTime | null {
    let time: PesTime | null = null;
    for (; this.#nextMark < this.#marks.length; this.#nextMark += 1) {
      const mark = this.#marks[this.#nextMark]!;
      if (mark.at > this.#dropped + offset) break;
      ({ time } = mark);
    }
    if (this.#nextMark > this.#marks.length / 2) {
      this.#marks.splice(0, this.#nextMark);
      this.#nextMark = 0;
    }
    return time;
  }

  /** Drops the first `count` bytes. */
  consume(count: number): void {
    if (count === 0) return;
    this.#start += count;
    this.#length -= count;
    this.#packetStart -= count;
    this.#dropped += count;
  }

  /** Moves what is held to the front, into a larger buffer if most of this one is in use. */
  #reserve(needed: number): void {
    if (needed > maxBytes) {
      throw new ServiceError(
        "upstream_invalid",
        `reading the stream stopped: an access unit has ${needed} bytes or more, the limit is ${maxBytes}`,
      );
    }
    const bytes = this.#bytes;
    const size = Math.min(maxBytes, Math.max(needed, bytes.length * 2));
    const isTight = needed > bytes.length / 2 && size > bytes.length;
    this.#bytes = isTight ? Buffer.allocUnsafeSlow(size) : bytes;
    bytes.copy(this.#bytes, 0, this.#start, this.#start + this.#length);
    this.#start = 0;
  }
}
