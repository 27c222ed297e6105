import { ServiceError } from "../../model/errors.ts";
import { type AccessUnit, startCode, trimZeros } from "../codecs/nal-units.ts";
import { nal, type VideoSyntax } from "../codecs/video-syntax.ts";
import type { ElementaryStream } from "./stream.ts";
import type { PesTime } from "./timestamps.ts";

/** An access unit of an elementary stream; valid until the callback that gets it returns. */
export interface TimedAccessUnit extends AccessUnit {
  /** Of the packet with its first byte; `null`: it has none. */
  time: PesTime | null;
  /** Nothing follows it on this timeline. */
  isLast: boolean;
}

const maxUnits = 16_384;

/** Splits an elementary stream into access units. */
export class AccessUnitReader {
  readonly #stream: ElementaryStream;
  readonly #syntax: VideoSyntax;
  readonly #onAccessUnit: (unit: TimedAccessUnit) => void;
  #starts: number[] = [];
  #roles: number[] = [];
  #time: PesTime | null = null;
  #hasPicture = false;
  /** The stream has been searched up to here. */
  #searched = 0;

  constructor(stream: ElementaryStream, syntax: VideoSyntax, onAccessUnit: (unit: TimedAccessUnit) => void) {
    this.#stream = stream;
    this.#syntax = syntax;
    this.#onAccessUnit = onAccessUnit;
  }

  /**
   * Reads the access units that are complete, with `isLast` also the one at the end.
   * @throws ServiceError `upstream_invalid` if an access unit has over 16384 NAL units.
   */
  read(isLast: boolean): void {
    const bytes = this.#stream.view();
    const reserve = isLast ? 1 : this.#syntax.headerLength;
    for (;;) {
      const at = bytes.indexOf(startCode, this.#searched);
      const start = at + startCode.length;
      if (at < 0 || start + reserve > bytes.length) {
        this.#searched = at < 0 ? Math.max(this.#searched, bytes.length - startCode.length + 1) : at;
        break;
      }
      const role = this.#syntax.classify(bytes, start);
      if (role & nal.start && this.#hasPicture) this.#finish(bytes, at, false);
      this.#add(start, role);
      this.#searched = start;
    }
    if (isLast) {
      this.#finish(bytes, bytes.length, true);
      this.#release(bytes.length);
    } else {
      const first = this.#starts[0];
      this.#release(first === undefined ? this.#searched : first - startCode.length);
    }
  }

  #finish(bytes: Buffer, end: number, isLast: boolean): void {
    const starts = this.#starts;
    const ends = starts.map((start, i) =>
      trimZeros(bytes, start, (starts[i + 1] ?? end + startCode.length) - startCode.length),
    );
    const unit = { bytes, starts, ends, roles: this.#roles, time: this.#time, isLast };
    if (this.#hasPicture) this.#onAccessUnit(unit);
    this.#starts = [];
    this.#roles = [];
    this.#hasPicture = false;
  }

  #add(start: number, role: number): void {
    if (this.#starts.length === 0) this.#time = this.#stream.takeTime(start - startCode.length);
    if (this.#starts.length >= maxUnits) {
      throw new ServiceError(
        "upstream_invalid",
        `reading the video stopped: an access unit has over ${maxUnits} NAL units, which is the limit`,
      );
    }
    this.#starts.push(start);
    this.#roles.push(role);
    this.#hasPicture ||= (role & nal.picture) !== 0;
  }

  /** Drops everything before `offset`. */
  #release(offset: number): void {
    this.#stream.consume(offset);
    this.#searched = Math.max(0, this.#searched - offset);
    const starts = this.#starts;
    for (let i = 0; i < starts.length; i++) starts[i] = (starts[i] ?? 0) - offset;
  }
}
