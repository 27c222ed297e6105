import {
  discontinuityLimits,
  isDiscontinuity,
  leastOffset,
  maxSkipDriftS,
  type Joined,
  SkipError,
  type Timelines,
} from "../../timelines.ts";
import type { Sample, SampleSink, SegmentTiming, TrackFormat, TrackKind } from "../../samples.ts";
import { createTrackOutputs, type TrackOutput } from "../../track-output.ts";
import { damagedError } from "../boxes.ts";
import type { IndexedSample } from "./indexed-sample.ts";
import { type InitTrack, secondsOf } from "./init.ts";
import { createCuts } from "./span-cut.ts";

/** Creates a writer of samples: one track of the sink per slot, whatever init sections follow each other. */
export function createSampleOutput(sink: SampleSink, timelines: Timelines, onDrop: (kind: TrackKind) => void) {
  const outputs = createTrackOutputs(sink);
  const cuts = createCuts();
  let position = startOf(null);
  const ends = new SlotEnds();

  /** Returns the seconds to add to the media times of `samples`; `null`: they were in the segment before. */
  function offsetOf(samples: readonly IndexedSample[], timing: SegmentTiming): number | null {
    const { timeline, offsetS } = timing;
    const isNew = timeline !== position.timeline;
    if (isNew) position = startOf(timeline);
    const firstS = earliestS(samples);
    const offset = timelines.offset(timeline, offsetS, firstS, isNew ? ends.join(samples) : []) + position.movedS;
    const hasSkipped = timing.skippedS !== undefined && timing !== position.latest;
    const isSameSegment = timing === position.latest && timing.durationS !== undefined;
    position.latest = timing;
    if (isNew || hasSkipped) cuts.noteBreak();
    if (offsetS !== null) return offset;
    if (hasSkipped) checkSkip(firstS + offset - (timing.skippedS ?? 0), position);
    if (hasSkipped || doesContinue(samples, offset, position)) return offset;
    if (isSameSegment) return null;
    const moved = timelines.continueAt({ source: outputs, timeline, firstS, atS: ends.nextFor(samples) }) - firstS;
    position.movedS += moved - offset;
    cuts.noteBreak();
    return moved;
  }

  function writeSample(bytes: Uint8Array, sample: IndexedSample, offsetS: number, timing: SegmentTiming): void {
    const { track, pts } = sample;
    const output = outputs(track);
    const presented = toPresentation(bytes, sample, output.timescale, offsetS);
    if (isRepeated(output, track, presented)) return;
    cuts.of(sample, output).write(formatOf(track, sample.entry), presented, timing, pts < track.startTicks);
    const endS = advance(position, sample, offsetS);
    ends.reach(track.slot, endS);
    timelines.reach(endS);
  }

  return {
    /** Adds the track to the sink, before its first sample is known. */
    addTrack: (track: InitTrack): void => outputs(track).setFormat(formatOf(track, track.defaults.entry)),
    /**
     * Writes `samples`, whose offsets count from the start of `bytes`, in the order of their decode times, those of all
     * tracks together. After a discontinuity of decode times within a timeline without an offset in the manifest, they continue
     * where no track overlaps what it had before; within a segment of a list they are damage, and left out.
     * @throws ServiceError `upstream_invalid` if a sample is not within `bytes` or has no sample entry.
     */
    write(bytes: Uint8Array, samples: IndexedSample[], timing: SegmentTiming): void {
      const offset = samples.length === 0 ? null : offsetOf(samples, timing);
      if (offset === null) return kindsOf(samples).forEach((kind) => onDrop(kind));
      samples.sort((a, b) => secondsOf(a.track, a.dts) - secondsOf(b.track, b.dts));
      const presented = withSlack(samples, offset, timing);
      for (const sample of samples) writeSample(bytes, sample, offset, presented);
    },
    /** Returns the seconds that have been added to the latest media times of a timeline; `null`: to none. */
    latestOffset: ({ timeline }: SegmentTiming) => (timeline === position.timeline ? position.offsetS : null),
    /** Writes what is held back where Periods end. */
    flush: () => cuts.flush(),
  };
}

/** Returns the timing with a span that ends later, if the samples end so little after it. */
function withSlack(samples: readonly IndexedSample[], offsetS: number, timing: SegmentTiming): SegmentTiming {
  const { span, endSlackS = 0 } = timing;
  if (span === undefined || endSlackS === 0) return timing;
  const endS = span.endS + endSlackS;
  const isWithin = samples.every(({ track, pts, duration }) => secondsOf(track, pts + duration) + offsetS <= endS);
  return isWithin ? { ...timing, span: { ...span, endS } } : timing;
}

/** Smaller samples are PCM, which no packager repeats. */
const minRepeated = 32;

/** Returns whether the track had this sample of audio just before; else notes it. */
function isRepeated({ repeats }: TrackOutput, { slot }: InitTrack, { data, dts, duration }: Sample): boolean {
  if (slot === "video" || data.length < minRepeated) return false;
  if (repeats.has(data, dts, duration / 4)) return true;
  repeats.add(data, dts);
  return false;
}

/** Returns the media time at which the first of them is presented, seconds. */
export function earliestS(samples: readonly IndexedSample[]): number {
  return samples.reduce((least, { track, pts }) => Math.min(least, secondsOf(track, pts)), Infinity);
}

/** Presentation time at which the latest sample of each slot ends, whatever timeline it is of. */
class SlotEnds {
  readonly #ends = new Map<string, number>();

  reach(slot: string, endS: number): void {
    this.#ends.set(slot, Math.max(this.#ends.get(slot) ?? -Infinity, endS));
  }

  /** Returns where each slot of `samples` ended before and begins now; none if some slots are not among them. */
  join(samples: readonly IndexedSample[]): Joined[] {
    const slots = Map.groupBy(samples, ({ track }) => track.slot);
    if (this.#ends.keys().some((slot) => !slots.has(slot))) return [];
    return [...slots].map(([slot, own]) => ({ endS: this.#ends.get(slot) ?? -Infinity, firstS: earliestS(own) }));
  }

  /** Returns when `samples` may begin so that no slot overlaps what it had before; after all of them if some slots are not among `samples`. */
  nextFor(samples: readonly IndexedSample[]): number {
    const joined = this.join(samples);
    return joined.length === 0 ? Math.max(...this.#ends.values()) : earliestS(samples) + leastOffset(joined);
  }
}

function kindsOf(samples: readonly IndexedSample[]): Set<TrackKind> {
  return new Set(samples.map(({ track }) => track.formats[0]!.kind));
}

/** @throws SkipError if media that start at `startS`, after what is left out is subtracted, are far from the end of those before. */
function checkSkip(startS: number, { reachedS, movedS }: TimelinePosition): void {
  const drift = startS - reachedS;
  if (Math.abs(drift) <= maxSkipDriftS && movedS === 0) return;
  throw new SkipError(`the media after those that are left out are ${drift} s from where their list has them`);
}

/** How far a timeline has been written, seconds. */
interface TimelinePosition {
  timeline: number | null;
  /** Decode time at which the latest sample of each slot ends. */
  ends: Map<string, number>;
  /** Presentation time at which the latest sample ends. */
  reachedS: number;
  /** Of the latest samples. */
  offsetS: number | null;
  /** How far the samples have been moved because of discontinuities. */
  movedS: number;
  /** Of the latest samples. */
  latest: SegmentTiming | null;
}

function startOf(timeline: number | null): TimelinePosition {
  return { timeline, ends: new Map(), reachedS: -Infinity, offsetS: null, movedS: 0, latest: null };
}

/** Notes a sample that was written; returns the presentation time at which it ends. */
function advance(position: TimelinePosition, { track, dts, pts, duration }: IndexedSample, offsetS: number): number {
  position.offsetS = offsetS;
  position.ends.set(track.slot, secondsOf(track, dts + duration) + offsetS);
  const endS = secondsOf(track, pts + duration) + offsetS;
  position.reachedS = Math.max(position.reachedS, endS);
  return endS;
}

const limits = discontinuityLimits(1);

/** Returns whether the first sample of each track continues those before. */
function doesContinue(samples: readonly IndexedSample[], offsetS: number, { ends }: TimelinePosition): boolean {
  if (ends.size === 0) return true;
  const latest = Math.max(...ends.values());
  const tracks = new Set(samples.map(({ track }) => track));
  return [...tracks].every((track) => {
    const first = samples.find((sample) => sample.track === track)!;
    const atS = secondsOf(track, first.dts) + offsetS;
    return !isDiscontinuity(atS, ends.get(track.slot) ?? -Infinity, latest, limits);
  });
}

/** Returns the sample with its data and its presentation times, in ticks of `timescale`. */
function toPresentation(
  bytes: Uint8Array,
  { track, offset, size, dts, pts, duration, isSync, groups }: IndexedSample,
  timescale: number,
  offsetS: number,
): Sample {
  if (offset < 0 || offset + size > bytes.length) {
    throw damagedError(`a sample of ${size} bytes is at ${offset} of ${bytes.length} bytes`);
  }
  const [{ timescale: ownTimescale, kind }] = track.formats as [TrackFormat];
  const ratio = timescale / ownTimescale;
  const shift = Math.round(offsetS * timescale);
  const toTicks = (time: number) => Math.round((time - track.shiftTicks) * ratio) + shift;
  const times = { dts: toTicks(dts), pts: toTicks(pts) };
  if (!Object.values(times).every(Number.isSafeInteger)) throw damagedError("a sample has a time beyond 2^53");
  return {
    data: bytes.subarray(offset, offset + size),
    ...times,
    duration: Math.round(duration * ratio),
    isSync,
    ...(groups && { groups }),
    ...(kind === "audio" && primingOf(track, pts, duration, ratio)),
  };
}

/** A longer part that an edit leaves out is no priming. */
const maxPrimingS = 1;

/** Returns how much of a sample comes before the first edit. */
function primingOf(
  track: InitTrack,
  pts: number,
  duration: number,
  ratio: number,
): Pick<Sample, "primingTicks"> | undefined {
  const hidden = track.startTicks - pts;
  if (hidden <= 0 || hidden > maxPrimingS * track.formats[0]!.timescale) return undefined;
  return { primingTicks: Math.round(Math.min(hidden, duration) * ratio) };
}

function formatOf({ formats }: InitTrack, entry: number): TrackFormat {
  // Some files have 0 where they mean the first.
  const format = formats[Math.max(entry, 1) - 1];
  if (format === undefined) throw damagedError(`there is no sample entry ${entry}, but ${formats.length}`);
  return format;
}
