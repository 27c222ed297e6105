import { type AccessUnit, createAccessUnitReader } from "./access-units.ts";
import type { ElementaryStream } from "./elementary-stream.ts";
import { createNalWriter } from "../codecs/nal-writer.ts";
import { createParameterSets } from "../codecs/parameter-sets.ts";
import type { TrackOutput } from "./track-output.ts";
import { ticksPerSecond, type Clock, unwrap } from "./clock.ts";
import { nal, type VideoSyntax } from "../codecs/video-syntax.ts";

/** Makes the samples of one track of an elementary stream. */
export interface TrackReader {
  /** Reads what is complete; with `isLast` everything. */
  read(isLast: boolean): void;
  /** What comes next does not go on from what is held: bytes in between were lost. */
  skip(): void;
}

export interface VideoTrackOptions {
  stream: ElementaryStream;
  syntax: VideoSyntax;
  clock: Clock;
  output: TrackOutput;
  language: string | null;
}

/** A stream that says something else in every picture goes on with what is in the pictures alone. */
const maxFormats = 64;
const usualDuration = ticksPerSecond / 25;
/** Nothing is shown later than this after it was decoded. */
const maxDelay = 10 * ticksPerSecond;

/**
 * H.264 or HEVC. Parameter sets go into the sample entry; those that change later make another one and
 * stay in the samples too, for readers that only look at one of the two places. Pictures before the
 * first parameter sets are left out.
 */
export function createVideoTrack(options: VideoTrackOptions): TrackReader {
  const { stream, syntax, clock, output, language } = options;
  const sets = createParameterSets(syntax);
  const writeNals = createNalWriter();
  let formats = 0;
  let dts = -usualDuration;
  let delay = 0;
  let duration = usualDuration;

  const declare = (): void => {
    if (formats > maxFormats) return;
    const description = syntax.describe(sets.list());
    if (!description) return;
    output.setFormat({ kind: "video", timescale: ticksPerSecond, language, ...description });
    formats++;
  };
  const advance = (unit: AccessUnit): void => {
    if (!unit.time) {
      dts += duration;
      return;
    }
    const next = clock.time(unit.time.dts);
    if (next > dts && next - dts < ticksPerSecond) duration = next - dts;
    dts = next;
    delay = unwrap(unit.time.pts - unit.time.dts, 0);
    if (Math.abs(delay) > maxDelay) delay = 0;
  };
  const onAccessUnit = (unit: AccessUnit): void => {
    advance(unit);
    if (sets.take(unitsOf(unit, nal.parameters))) declare();
    if (formats === 0) return;
    clock.reach(dts + delay + duration);
    output.write({
      data: writeNals(unit, formats === 1 ? nal.filler | nal.parameters : nal.filler),
      dts,
      pts: dts + delay,
      duration: unit.isLast ? duration : 0,
      isSync: isSync(unit, syntax),
    });
  };
  const units = createAccessUnitReader(stream, syntax, onAccessUnit);
  return { read: units.read, skip: () => {} };
}

function unitsOf(unit: AccessUnit, role: number): Buffer[] {
  return unit.roles.flatMap((found, i) =>
    found & role ? [unit.bytes.subarray(unit.starts[i], unit.ends[i])] : [],
  );
}

function isSync(unit: AccessUnit, syntax: VideoSyntax): boolean {
  if (unit.roles.some((role) => (role & nal.sync) !== 0)) return true;
  return unitsOf(unit, nal.message).some(syntax.isRecoveryPoint);
}
