import { type AccessUnit, createNalWriter, nalUnitsWith } from "../nal/nal-units.ts";
import { createParameterSets, nal, type VideoSyntax } from "../codecs/video-syntax.ts";
import { createVideoJoins } from "../mp4/joins.ts";
import { AccessUnitReader, type TimedAccessUnit } from "./access-units.ts";
import { DisplayTimes } from "./display-times.ts";
import type { StreamClock } from "./clock.ts";
import type { ListedEnd } from "./listed-end.ts";
import { type PesTime, ticksPerSecond, unwrap } from "./timestamps.ts";
import type { TrackReader, TrackReaderOptions } from "./stream.ts";

/** A stream with more different formats keeps the sample entry before; the samples have the parameter sets too. */
const maxFormats = 64;
const defaultDuration = ticksPerSecond / 25;
/** A longer distance of two pictures may be a gap, unless the one before is as long. */
const maxDuration = ticksPerSecond;
/** A manifest is not more exact. */
const leastListed = ticksPerSecond / 10;
/** Between decode and presentation time. */
const maxDelay = 10 * ticksPerSecond;
/** A picture is shown at most this many pictures before one that is decoded before it. */
const maxReorder = 16;

export interface VideoTrackOptions extends TrackReaderOptions<VideoSyntax> {
  listedEnd: ListedEnd;
}

/**
 * Creates a reader of H.264 or HEVC. Parameter sets go into the sample entry. If they change, they make
 * another sample entry and stay in the samples too, for players that read only one of the two. Pictures
 * before the first parameter sets are left out.
 */
export function createVideoTrack(options: VideoTrackOptions): TrackReader {
  const { stream, syntax, clock, output, language, onDrop = () => {} } = options;
  const sets = createParameterSets(syntax);
  const writeNals = createNalWriter();
  const formats = new Set<string>();
  let longest = 0;
  const times = new PictureTimes(clock);
  const { steps } = times;
  const joins = createVideoJoins(output);
  /** Time of the picture before, if it is the last one of its part. */
  let ending: PesTime | null = null;

  const declare = (): void => {
    const isFull = formats.size >= maxFormats;
    const list = sets.list();
    // Sets that are longer than all sample entries are in none of them.
    if (isFull && list.reduce((sum, { unit }) => sum + unit.length, 0) > longest) return;
    const description = syntax.describe(list);
    if (!description) return;
    const entry = Buffer.from(description.sampleEntry).toString("latin1");
    if (isFull && !formats.has(entry)) return;
    formats.add(entry);
    longest = Math.max(longest, entry.length);
    joins.setFormat({ kind: "video", timescale: ticksPerSecond, language, ...description });
  };
  const onAccessUnit = (unit: TimedAccessUnit): void => {
    const isJoined = ending !== null && !isNext(ending, unit.time, steps.usual);
    if (isJoined) joins.begin();
    ending = unit.isLast ? unit.time : null;
    times.advance(unit, isJoined);
    if (sets.take(nalUnitsWith(unit, nal.parameters))) declare();
    if (formats.size === 0) return onDrop();
    const duration = unit.isLast ? lastDuration(unit.time, options, steps) : steps.usual;
    const { dts, pts, isGuessed } = times;
    clock.reach(pts + duration);
    joins.write({
      data: writeNals(unit, formats.size === 1 ? nal.filler | nal.parameters : nal.filler),
      dts,
      pts,
      duration: unit.isLast ? duration : 0,
      isSync: isSync(unit, syntax),
      ...(isGuessed && { isGuessed }),
    });
  };
  const units = new AccessUnitReader(stream, syntax, onAccessUnit, onDrop);
  // PES packets with missing bytes are removed from the stream.
  return { read: (isLast) => units.read(isLast), skip: () => units.skip() };
}

/** The times of one picture after the other, ticks. */
class PictureTimes {
  readonly steps = createSteps();
  dts = -defaultDuration;
  /** When it is shown was guessed. */
  isGuessed = false;
  #delay = 0;
  /** Decode time of the latest picture that has one, and how many came after it. */
  #timed = this.dts;
  #untimed = 0;
  readonly #clock: StreamClock;
  readonly #reorder = createReorder();
  readonly #displayTimes = new DisplayTimes();

  constructor(clock: StreamClock) {
    this.#clock = clock;
  }

  get pts(): number {
    return this.dts + this.#delay;
  }

  /** Goes on to the next picture; `isJoined`: it belongs to another part. */
  advance({ time, order }: TimedAccessUnit, isJoined: boolean): void {
    if (time === null) {
      this.dts += this.steps.usual;
      this.#untimed += 1;
      const found = this.#displayTimes.find(order);
      this.isGuessed = this.#delay !== 0 && found === null;
      if (found !== null) this.#show(found);
      return;
    }
    const shown = this.#clock.time(time.pts);
    const last = this.#untimed > 0 || isJoined ? null : this.dts;
    this.dts = this.#reorder.decodeTime(this.#clock.time(time.dts), shown, last);
    this.steps.add((this.dts - this.#timed) / (this.#untimed + 1));
    this.#timed = this.dts;
    this.#untimed = 0;
    this.isGuessed = false;
    this.#show(shown);
    this.#displayTimes.note(order, shown);
  }

  #show(at: number): void {
    this.#delay = Math.abs(at - this.dts) > maxDelay ? 0 : at - this.dts;
  }
}

/** Whether the times of another part continue: then nothing is missing between them, and pictures may refer to those before. */
function isNext(before: PesTime, time: PesTime | null, step: number): boolean {
  return time !== null && Math.abs(unwrap(time.dts, before.dts) - before.dts - step) <= step / 2;
}

/** Finds decode times of pictures that state only when they are shown, although they are not decoded in that order. */
function createReorder() {
  let hasDecodeTimes = false;
  const recent = new Float64Array(2 * maxReorder).fill(-Infinity);
  let count = 0;
  let latest = -Infinity;
  /** The least distance of two pictures. */
  let least = Infinity;
  /** Whether it is shown in a gap that others have left; where parts of streams are joined, others overlap. The first ones tell `least`. */
  const isBetween = (shown: number): boolean => {
    if (count === 0) return false;
    const isApart = count < maxReorder || recent.every((other) => Math.abs(other - shown) > least / 2);
    return isApart && latest - shown <= maxReorder * least;
  };
  return {
    /** @param last Decode time of the picture before; `null`: it was guessed, or belongs to another part. */
    decodeTime(stated: number, shown: number, last: number | null): number {
      hasDecodeTimes ||= stated !== shown;
      const distance = Math.abs(shown - recent[(count + recent.length - 1) % recent.length]!);
      if (distance > 0) least = Math.min(least, distance);
      const isReordered = !hasDecodeTimes && last !== null && stated <= last && isBetween(shown);
      recent[count++ % recent.length] = shown;
      latest = Math.max(latest, shown);
      return isReordered ? last + least : stated;
    },
  };
}

/** Pictures at equal distances, and shorter than this, are a film: the last one lasts no longer. */
const maxSteady = ticksPerSecond / 5;
/** So many equal distances. */
const steadySteps = 12;

/** Measures how long a picture lasts by the distances of decode times. */
function createSteps() {
  let count = 0;
  let latest = 0;
  let usual = defaultDuration;
  let steady = 0;
  return {
    get isSteady(): boolean {
      return steady >= steadySteps && usual <= maxSteady;
    },
    get usual(): number {
      return usual;
    },
    add(step: number): void {
      count += 1;
      // The first one has none before it.
      if (count === 1 || step <= 0) return;
      steady = Math.abs(step - usual) <= usual / 8 ? steady + 1 : 0;
      if (step < maxDuration || count === 2 || latest >= maxDuration) usual = step;
      latest = step;
    },
  };
}

/** Returns how long the last picture lasts: as the pictures before, or longer if the manifest says so. */
function lastDuration(
  time: PesTime | null,
  { listedEnd }: VideoTrackOptions,
  { usual, isSteady }: ReturnType<typeof createSteps>,
): number {
  if (isSteady) return usual;
  const listed = time === null ? null : listedEnd.after(time.pts);
  return listed !== null && listed - usual > leastListed ? Math.round(listed) : usual;
}

function isSync(unit: AccessUnit, syntax: VideoSyntax): boolean {
  if (unit.roles.some((role) => (role & nal.sync) !== 0)) return true;
  return nalUnitsWith(unit, nal.message).some(syntax.isRecoveryPoint);
}
