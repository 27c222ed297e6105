import type { TimeBases } from "../elementary-streams/time-bases.ts";
import { type PesTime, ticksPerSecond, unwrap } from "../elementary-streams/timestamps.ts";
import type { DemuxerOptions } from "../samples.ts";
import { packetLength, pesStart } from "./packets.ts";
import { longestTimeEnd, readPesTime } from "./pes.ts";

/** More are not held until it is known when they are presented. */
const maxHeld = 256;
/** No picture lasts longer. */
const maxStep = ticksPerSecond;

/** Reads the times of a stream that is not read otherwise, by the time bases of those that are. */
export class UnreadStream {
  readonly #bases: TimeBases;
  readonly #onUnread: DemuxerOptions["onUnread"];
  #held: { pts: number; step: number }[] = [];
  #latest: PesTime | null = null;
  /** When the earliest one that was found is presented; Infinity: none yet. */
  #earliest = Infinity;
  /** Its times have fallen back. */
  #hasFallenBack = false;

  constructor(bases: TimeBases, onUnread: DemuxerOptions["onUnread"]) {
    this.#bases = bases;
    this.#onUnread = onUnread;
  }

  /** Reads its packet that starts at `at`. */
  read(bytes: Buffer, at: number): void {
    const isStart = ((bytes[at + 1] ?? 0) & 0xc0) === 0x40;
    const start = isStart ? pesStart(bytes, at) : -1;
    const isWhole = start >= 0 && start + longestTimeEnd <= at + packetLength;
    const time = isWhole ? readPesTime(bytes.subarray(start, at + packetLength)) : null;
    if (time !== null) this.#note(time);
  }

  /** Other times begin. */
  reset(): void {
    this.#held = [];
    this.#latest = null;
  }

  #note(time: PesTime): void {
    const step = this.#latest === null ? 0 : unwrap(time.dts, this.#latest.dts) - this.#latest.dts;
    this.#latest = time;
    this.#hasFallenBack ||= step < -maxStep;
    this.#held = [...this.#held.slice(1 - maxHeld), { pts: time.pts, step: step > 0 && step <= maxStep ? step : 0 }];
    this.#held = this.#held.filter(({ pts, step: lasts }) => {
      const start = this.#bases.presentationOf(pts);
      if (start === undefined) return true;
      // It belongs to a time base that those that are read have yet to begin.
      if (this.#hasFallenBack && start < this.#earliest && this.#earliest < Infinity) return false;
      this.#earliest = Math.min(this.#earliest, start);
      this.#onUnread?.({ startS: start / ticksPerSecond, endS: (start + lasts) / ticksPerSecond });
      return false;
    });
  }
}
