import { ServiceError } from "../../model/errors.ts";
import { type AccessUnit, startCode, trimZeros } from "../nal/nal-units.ts";
import { type DisplayOrder, nal, type Picture, type PictureReader, type VideoSyntax } from "../codecs/video-syntax.ts";
import type { ElementaryStream } from "./stream.ts";
import type { PesTime } from "./timestamps.ts";

/** A picture of an elementary stream: a frame, with both of its fields; valid until the callback that gets it returns. */
export interface TimedAccessUnit extends AccessUnit {
  /** Of the packet with its first byte; `null`: it has none. */
  time: PesTime | null;
  /** `null`: not known. */
  order: DisplayOrder | null;
  /** Nothing follows it on this timeline. */
  isLast: boolean;
}

const maxUnits = 16_384;

/** An access unit that was found; its offsets change with what the stream releases. */
interface HeldUnit {
  starts: number[];
  ends: number[];
  roles: number[];
  time: PesTime | null;
  order: DisplayOrder | null;
}

/**
 * Splits an elementary stream into access units. Two that are the fields of one frame become one: an MP4 has
 * both in a sample.
 */
export class AccessUnitReader {
  readonly #stream: ElementaryStream;
  readonly #syntax: VideoSyntax;
  readonly #onAccessUnit: (unit: TimedAccessUnit) => void;
  readonly #onLoss: () => void;
  #starts: number[] = [];
  #roles: number[] = [];
  #time: PesTime | null = null;
  #hasPicture = false;
  readonly #pictures: PictureReader | undefined;
  /** A first field, until the next access unit is known. */
  #field: HeldUnit | null = null;
  /** Where bytes are missing: no field after one is the second of a field before it. */
  #gaps: number[] = [];
  /** The stream has been searched up to here. */
  #searched = 0;

  /** @param onLoss Called where the numbers of pictures show that some are missing. */
  constructor(
    stream: ElementaryStream,
    syntax: VideoSyntax,
    onAccessUnit: (unit: TimedAccessUnit) => void,
    onLoss: () => void,
  ) {
    this.#stream = stream;
    this.#syntax = syntax;
    this.#pictures = syntax.createPictureReader?.();
    this.#onAccessUnit = onAccessUnit;
    this.#onLoss = onLoss;
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
      this.#pictures?.skip();
      this.#release(bytes.length);
    } else {
      const first = this.#field?.starts[0] ?? this.#starts[0];
      this.#release(first === undefined ? this.#searched : first - startCode.length);
    }
  }

  /** Bytes are missing after those that are held. */
  skip(): void {
    this.#gaps.push(this.#stream.length);
  }

  #finish(bytes: Buffer, end: number, isLast: boolean): void {
    const [starts, roles, time, hasPicture] = [this.#starts, this.#roles, this.#time, this.#hasPicture];
    this.#starts = [];
    this.#roles = [];
    this.#hasPicture = false;
    const ends = starts.map((start, i) =>
      trimZeros(bytes, start, (starts[i + 1] ?? end + startCode.length) - startCode.length),
    );
    const { part, order } = hasPicture
      ? this.#readPicture({ bytes, starts, ends, roles })
      : { part: null, order: null };
    const unit = { starts, ends, roles, time, order };
    const first = this.#field;
    this.#field = null;
    const isPair = first !== null && part === "second";
    if (first !== null && !isPair) this.#onAccessUnit({ bytes, ...first, isLast: isLast && !hasPicture });
    if (part === "first" && !isLast) this.#field = unit;
    else if (hasPicture) this.#onAccessUnit({ bytes, ...(isPair ? joinFields(first, unit) : unit), isLast });
  }

  #readPicture(unit: AccessUnit): Picture {
    const later = this.#gaps.filter((gap) => gap > (unit.starts[0] ?? 0));
    if (later.length < this.#gaps.length) this.#pictures?.skip();
    this.#gaps = later;
    const picture = this.#pictures?.next(unit) ?? { part: "frame", order: null, isAfterLoss: false };
    if (picture.isAfterLoss) this.#onLoss();
    return picture;
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
    for (const offsets of [this.#gaps, this.#starts, this.#field?.starts ?? [], this.#field?.ends ?? []]) {
      for (let i = 0; i < offsets.length; i++) offsets[i] = (offsets[i] ?? 0) - offset;
    }
  }
}

/** Decoding starts at a first field, never at a second one. */
function joinFields(first: HeldUnit, second: HeldUnit): HeldUnit {
  return {
    starts: [...first.starts, ...second.starts],
    ends: [...first.ends, ...second.ends],
    roles: [...first.roles, ...second.roles.map((role) => role & ~(nal.sync | nal.message))],
    time: first.time,
    order: first.order,
  };
}
