import { openFullBox } from "../box-reader.ts";
import { type Box, boxesIn, childrenOf, damagedError, findChild, firstBox, getChild, viewOf } from "../boxes.ts";
import { openSampleGroups, readGroupDescriptions } from "../sample-groups.ts";
import { readRange } from "./file-boxes.ts";
import { type Budget, createBudget, type IndexedSample, spend } from "./indexed-sample.ts";
import { type InitTrack, noDefaults, type SampleDefaults } from "./init.ts";

export type FragmentTrack = Pick<InitTrack, "id" | "defaults" | "groups">;

export interface FragmentContext<Track extends FragmentTrack = InitTrack> {
  /** The tracks to read; others are left out. */
  tracks: readonly Track[];
  /** Decode time, in ticks, at which a track continues if the fragment has no `tfdt`; is updated. */
  nextDts: Map<Track, number>;
  budget: Budget;
}

/**
 * Reads the samples of a `moof` box (ISO/IEC 14496-12 §8.8), track by track. Their offsets count from
 * the start of `bytes`.
 * @throws ServiceError `upstream_invalid`.
 */
export function readFragment<T extends FragmentTrack>(bytes: Uint8Array, moof: Box, context: FragmentContext<T>) {
  const { runs, isAbsolute } = readFragmentRuns(bytes, moof, context);
  const samples = runs.flatMap((run) => run.samples);
  const shift = isAbsolute ? distanceToData(bytes, moof, runs) : 0;
  for (const sample of samples) sample.offset += shift;
  return samples;
}

/**
 * Like `readFragment`, but run by run; needs no media data. `isAbsolute`: the offsets count from the start of
 * the file that the fragment was written into, or start within the `moof`; the least of them is where the media data start.
 */
export function readFragmentRuns<Track extends FragmentTrack>(
  bytes: Uint8Array,
  moof: Box,
  { tracks, nextDts, budget }: FragmentContext<Track>,
): { runs: TrackRun<Track>[]; isAbsolute: boolean } {
  const runs: TrackRun<Track>[] = [];
  let isAbsolute = false;
  let dataEnd = moof.start;
  for (const traf of childrenOf(bytes, moof, "traf")) {
    const { track, defaults, absoluteBase, isFromMoof } = readFragmentHeader(bytes, traf, tracks);
    isAbsolute ||= absoluteBase !== null;
    const isOfMoof = isFromMoof || startsBehind(bytes, traf, moof);
    const base = absoluteBase ?? (isOfMoof ? moof.start : dataEnd);
    const place = { base, moof: absoluteBase === null ? moof : null };
    if (absoluteBase !== null) dataEnd = base;
    const nextGroups = track && openSampleGroups(bytes, traf, track.groups, readGroupDescriptions(bytes, traf));
    let dts = readDecodeTime(bytes, traf, track && nextDts.get(track));
    for (const trun of childrenOf(bytes, traf, "trun")) {
      const run = readTrackRun(bytes, trun, { ...place, track, defaults, dataEnd, dts, budget, nextGroups });
      runs.push(run);
      isAbsolute ||= run.dataEnd > run.dataStart && absoluteBase === null && isWithin(moof, run.dataStart);
      ({ dataEnd, dts } = run);
    }
    if (track !== undefined) nextDts.set(track, dts);
  }
  return { runs, isAbsolute };
}

/** A `moof` box of a file and its first box of media data, if it has one; and the range that has all of them. */
interface FragmentRange extends Pick<Box, "start" | "end"> {
  moof: Box;
  data: Box | undefined;
}

/** Yields the fragments of an open file with these boxes on its top level, as `createFragmentFinder`. @throws as that */
export function* pairFragments(fd: number, boxes: Iterable<Box>): Generator<FragmentRange> {
  const find = createFragmentFinder(fd);
  for (const box of boxes) yield* find(box);
  yield* find(null);
}

/**
 * Creates a function that takes the boxes on the top level of an open file one after the other, at last `null`, and returns the fragments that
 * are then known. Several of them whose media data follow are one range, of the last of them. Media data may also be before a fragment that
 * says so.
 * @throws ServiceError `upstream_invalid`; the file system's own errors.
 */
export function createFragmentFinder(fd: number): (box: Box | null) => FragmentRange[] {
  let range: FragmentRange | undefined;
  /** Media data of no fragment so far. */
  let front: Box | undefined;
  return (box) => {
    const before = range;
    if (box?.type === "mdat") {
      if (before === undefined) front = box;
      else range = { ...before, data: before.data ?? box, end: box.end };
    }
    if (box === null) return before === undefined ? [] : [before];
    if (box.type !== "moof") return [];
    const ended = before?.data === undefined ? [] : [before];
    const start = before === undefined || ended.length > 0 ? box.start : before.start;
    range = { moof: box, data: undefined, start, end: box.end };
    if (front !== undefined && startsIn(fd, box, front)) {
      ended.push({ ...range, data: front, start: front.start });
      range = undefined;
    }
    front = undefined;
    return ended;
  };
}

/** Whether a `moof` says that its samples begin in `data`. */
function startsIn(fd: number, fragment: Box, data: Box): boolean {
  const moof = readRange(fd, fragment);
  const nothing = { tracks: [], nextDts: new Map(), budget: createBudget(Infinity) };
  const { runs, isAbsolute } = readFragmentRuns(moof, firstBox(moof), nothing);
  const start = firstDataStart(runs) + (isAbsolute ? 0 : fragment.start);
  return start >= data.body && start < data.end;
}

/**
 * Reads `tfhd` (§8.8.7). `track`: undefined if it is not to be read. `absoluteBase`: offset in the file that data offsets
 * count from, `null` if there is none. `isFromMoof`: they count from the start of the `moof` box.
 */
function readFragmentHeader<Track extends FragmentTrack>(bytes: Uint8Array, traf: Box, tracks: readonly Track[]) {
  const reader = openFullBox(bytes, getChild(bytes, traf, "tfhd"));
  const { flags } = reader;
  const id = reader.u32();
  const track = tracks.find((candidate) => candidate.id === id);
  const absoluteBase = flags & 0x1 ? reader.i64() : null;
  const { entry, duration, size, flags: sampleFlags } = track?.defaults ?? noDefaults;
  const defaults = {
    entry: flags & 0x2 ? reader.u32() : entry,
    duration: flags & 0x8 ? reader.u32() : duration,
    size: flags & 0x10 ? reader.u32() : size,
    flags: flags & 0x20 ? reader.u32() : sampleFlags,
  };
  return { track, defaults, absoluteBase, isFromMoof: (flags & 0x20000) !== 0 };
}

/** Further from where its track continues, a decode time is taken for a restart. */
const maxWrapTicks = 2 ** 24;

/** Reads `tfdt` (§8.8.12), in ticks. `nextDts`: where the track continues, also without that box, and if times of 32 bits wrap there. */
function readDecodeTime(bytes: Uint8Array, traf: Box, nextDts: number | undefined): number {
  const tfdt = findChild(bytes, traf, "tfdt");
  if (tfdt === undefined) return nextDts ?? 0;
  const reader = openFullBox(bytes, tfdt);
  const time = reader.decodeTime();
  if (reader.version !== 0 || nextDts === undefined) return time;
  const unwrapped = time + 2 ** 32 * Math.round((nextDts - time) / 2 ** 32);
  return Math.abs(unwrapped - nextDts) <= maxWrapTicks ? unwrapped : time;
}

interface TrackRunContext<Track> {
  /** Undefined: the samples are only counted. */
  track: Track | undefined;
  defaults: SampleDefaults;
  /** What the run's data offset counts from, and what it may count from as well; `null`: nothing. */
  base: number;
  moof: Box | null;
  /** Where the data of the previous run ended, and the decode time of the first sample. */
  dataEnd: number;
  dts: number;
  budget: Budget;
  nextGroups: ReturnType<typeof openSampleGroups>;
}

/** The samples of a `trun`. */
export interface TrackRun<Track> {
  count: number;
  samples: IndexedSample<Track>[];
  /** Where its data start and end, and the decode time after its last sample. */
  dataStart: number;
  dataEnd: number;
  dts: number;
}

/** Reads a `trun` (ISO/IEC 14496-12 §8.8.8). */
function readTrackRun<Track>(bytes: Uint8Array, trun: Box, context: TrackRunContext<Track>): TrackRun<Track> {
  const { track, defaults, budget, nextGroups } = context;
  const reader = openFullBox(bytes, trun);
  const { flags } = reader;
  const count = reader.u32();
  const dataStart = flags & 0x1 ? dataStartAt(reader.i32(), context) : context.dataEnd;
  const firstFlags = flags & 0x4 ? reader.u32() : defaults.flags;
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  if (count * fields * 4 > reader.left) throw damagedError(`"trun" is too short for ${count} samples`);
  spend(budget, count, 0);
  const view = viewOf(bytes);
  const samples: IndexedSample<Track>[] = [];
  let [at, dts, dataEnd] = [trun.end - reader.left, context.dts, dataStart];
  for (let i = 0; i < count; i++) {
    const duration = flags & 0x100 ? view.getUint32((at += 4) - 4) : defaults.duration;
    const size = flags & 0x200 ? view.getUint32((at += 4) - 4) : defaults.size;
    const defaultFlags = i === 0 ? firstFlags : defaults.flags;
    const sampleFlags = flags & 0x400 ? view.getUint32((at += 4) - 4) : defaultFlags;
    // Signed in both versions of the box: some muxers write negative ones into version 0.
    const composition = flags & 0x800 ? view.getInt32((at += 4) - 4) : 0;
    spend(budget, 0, size);
    if (track !== undefined) {
      const { entry } = defaults;
      const pts = dts + composition;
      // sample_is_non_sync_sample, or sample_depends_on = 1 (§8.8.3.1).
      const isSync = (sampleFlags & 0x01010000) === 0;
      const sample: IndexedSample<Track> = { track, entry, offset: dataEnd, size, dts, pts, duration, isSync };
      const groups = nextGroups?.();
      if (groups !== undefined) sample.groups = groups;
      samples.push(sample);
    }
    dts += duration;
    dataEnd += size;
  }
  return { count, dataStart, samples, dataEnd, dts };
}

/**
 * Whether the data offsets of a `traf` may count from the `moof`. Without a flag they count from the end of the data of the track before; but
 * browsers count from the `moof`, as do muxers that forget the flag. Then none leads into the `moof`; counted from other data, the first one does.
 */
function startsBehind(bytes: Uint8Array, traf: Box, moof: Box): boolean {
  return childrenOf(bytes, traf, "trun").every((trun) => {
    const reader = openFullBox(bytes, trun);
    reader.u32();
    return (reader.flags & 0x1) === 0 || reader.i32() >= moof.end - moof.start;
  });
}

/** Returns where a data offset leads. One that leads into the `moof` was not filled in: its data follow those before. */
function dataStartAt(offset: number, { base, moof, dataEnd }: Omit<TrackRunContext<unknown>, "track">): number {
  const start = base + offset;
  return moof !== null && isWithin(moof, start) ? dataEnd : start;
}

const isWithin = ({ start, end }: Box, at: number): boolean => at >= start && at < end;

/**
 * Returns how far to move offsets that count from the start of the file, which is not in `bytes`: the
 * least of them is where the media data start. These follow, or are what `bytes` begin with.
 */
function distanceToData(bytes: Uint8Array, moof: Box, runs: readonly TrackRun<unknown>[]): number {
  const start = firstDataStart(runs);
  if (start === Infinity) return 0;
  const isData = ({ type }: Box): boolean => type === "mdat";
  const data = boxesIn(bytes, moof.end).find(isData) ?? [firstBox(bytes)].find(isData);
  if (data !== undefined) return data.body - start;
  throw damagedError(`no "mdat" follows a "moof"`);
}

/** Returns where the data of the runs begin; Infinity if they have no samples. */
const firstDataStart = (runs: readonly TrackRun<unknown>[]): number =>
  runs.reduce((least, { count, dataStart }) => (count > 0 ? Math.min(least, dataStart) : least), Infinity);
