import { ServiceError } from "../../model/errors.ts";
import { type AccessUnit, startCode, trimZeros } from "../codecs/nal-units.ts";
import { nal, type VideoSyntax } from "../codecs/video-syntax.ts";
import type { ElementaryStream } from "./stream.ts";
import type { PesTime } from "./timestamps.ts";

/** An access unit of an elementary stream; valid until the callback that gets it returns. */
export interface TimedAccessUnit extends AccessUnit {
  /** As stated for its first byte; `null`: not stated. */
  time: PesTime | null;
  /** Nothing follows it on this timeline. */
  isLast: boolean;
}

const maxUnits = 16_384;

/**
 * Splits an elementary stream into access units. The function that is returned reads those that are
 * complete, with `isLast` also the one at the end.
 * @throws ServiceError, from that function: `upstream_invalid` if an access unit has over 16384 NAL units.
 */
export function createAccessUnitReader(
  stream: ElementaryStream,
  syntax: VideoSyntax,
  onAccessUnit: (unit: TimedAccessUnit) => void,
): (isLast: boolean) => void {
  let starts: number[] = [];
  let roles: number[] = [];
  let time: PesTime | null = null;
  let hasPicture = false;
  /** The stream has been searched up to here. */
  let searched = 0;

  const finish = (bytes: Buffer, end: number, isLast: boolean): void => {
    const ends = starts.map((start, i) =>
      trimZeros(bytes, start, (starts[i + 1] ?? end + startCode.length) - startCode.length),
    );
    if (hasPicture) onAccessUnit({ bytes, starts, ends, roles, time, isLast });
    starts = [];
    roles = [];
    hasPicture = false;
  };
  const add = (start: number, role: number): void => {
    if (starts.length === 0) time = stream.takeTime(start - startCode.length);
    if (starts.length >= maxUnits) {
      throw new ServiceError(
        "upstream_invalid",
        `reading the video stopped: an access unit has over ${maxUnits} NAL units, which is the limit`,
      );
    }
    starts.push(start);
    roles.push(role);
    hasPicture ||= (role & nal.picture) !== 0;
  };
  /** Drops everything before `offset`. */
  const release = (offset: number): void => {
    stream.consume(offset);
    searched = Math.max(0, searched - offset);
    for (let i = 0; i < starts.length; i++) starts[i] = (starts[i] ?? 0) - offset;
  };

  return (isLast) => {
    const bytes = stream.view();
    const reserve = isLast ? 1 : syntax.headerLength;
    for (;;) {
      const at = bytes.indexOf(startCode, searched);
      const start = at + startCode.length;
      if (at < 0 || start + reserve > bytes.length) {
        searched = at < 0 ? Math.max(searched, bytes.length - startCode.length + 1) : at;
        break;
      }
      const role = syntax.classify(bytes, start);
      if (role & nal.start && hasPicture) finish(bytes, at, false);
      add(start, role);
      searched = start;
    }
    if (isLast) {
      finish(bytes, bytes.length, true);
      release(bytes.length);
    } else {
      const first = starts[0];
      release(first === undefined ? searched : first - startCode.length);
    }
  };
}
