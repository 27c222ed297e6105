import type { OpenFile } from "../../open-file.ts";
import type { TrackKind } from "../../samples.ts";
import { sampleTicksOf } from "../../track-output.ts";
import { firstBox } from "../boxes.ts";
import { createGroupSets, rollOf } from "../sample-groups.ts";
import { checkSampleTables } from "./check-tables.ts";
import { readIndex } from "./movie-index.ts";
import { requireUsualRates } from "./headers.ts";
import { createBudget, type IndexedSample, maxFileSamples } from "./indexed-sample.ts";
import { type InitTrack, type RankedTrack, readAllTracks } from "./init.ts";
import { numbersInFile } from "./number-source.ts";
import { readSampleTables } from "./sample-tables.ts";

/** The samples of a track in decode order, in columns: 35 bytes each. Times are media times in ticks. */
export class SampleList {
  readonly track: InitTrack;
  #length = 0;
  #dts = new Float64Array(firstCapacity);
  #pts = new Float64Array(firstCapacity);
  #offsets = new Float64Array(firstCapacity);
  #durations = new Uint32Array(firstCapacity);
  #sizes = new Uint32Array(firstCapacity);
  /** The number of the sample entry, negative unless decoding can start here. */
  #entries = new Int32Array(firstCapacity);
  /** The number of the set of its groups. */
  #groups = new Uint16Array(firstCapacity);
  readonly #groupSets = createGroupSets();

  constructor(track: InitTrack, samples: Iterable<IndexedSample>) {
    this.track = track;
    for (const sample of samples) this.#add(sample);
  }

  get length(): number {
    return this.#length;
  }

  /** Ticks per second. */
  get timescale(): number {
    return this.track.formats[0]!.timescale;
  }

  dts(index: number): number {
    return this.#dts[index] ?? Number.NaN;
  }

  pts(index: number): number {
    return this.#pts[index] ?? Number.NaN;
  }

  duration(index: number): number {
    return this.#durations[index] ?? 0;
  }

  /** Bytes. */
  size(index: number): number {
    return this.#sizes[index] ?? 0;
  }

  isSync(index: number): boolean {
    return (this.#entries[index] ?? 0) > 0;
  }

  /** How many samples before it have to be decoded for it, as its groups say; 0: they do not say. */
  roll(index: number): number {
    return rollOf(this.#groupSets.all[this.#groups[index] ?? 0]);
  }

  /** @throws RangeError */
  at(index: number): IndexedSample {
    if (index < 0 || index >= this.#length) throw new RangeError(`there is no sample ${index}`);
    const groups = this.#groupSets.all[this.#groups[index] ?? 0];
    return {
      track: this.track,
      entry: Math.abs(this.#entries[index]!),
      offset: this.#offsets[index]!,
      size: this.#sizes[index]!,
      dts: this.dts(index),
      pts: this.pts(index),
      duration: this.duration(index),
      isSync: this.isSync(index),
      ...(groups && { groups }),
    };
  }

  #add({ entry, offset, size, dts, pts, duration, isSync, groups }: IndexedSample): void {
    if (this.#length === this.#sizes.length) this.#grow();
    const index = this.#length++;
    this.#dts[index] = dts;
    this.#pts[index] = pts;
    this.#offsets[index] = offset;
    this.#durations[index] = duration;
    this.#sizes[index] = size;
    this.#groups[index] = this.#groupSets.add(groups);
    this.#entries[index] = isSync ? entry : -entry;
  }

  #grow(): void {
    const capacity = 2 * this.#sizes.length;
    const wide = (column: Float64Array<ArrayBuffer>) => copyInto(new Float64Array(capacity), column);
    this.#dts = wide(this.#dts);
    this.#pts = wide(this.#pts);
    this.#offsets = wide(this.#offsets);
    this.#durations = copyInto(new Uint32Array(capacity), this.#durations);
    this.#sizes = copyInto(new Uint32Array(capacity), this.#sizes);
    this.#groups = copyInto(new Uint16Array(capacity), this.#groups);
    this.#entries = copyInto(new Int32Array(capacity), this.#entries);
  }
}

const firstCapacity = 1024;

function copyInto<Column extends { set(other: Column): void }>(larger: Column, column: Column): Column {
  larger.set(column);
  return larger;
}

/** Returns the samples of a track, with all times in the ticks that edits of it need; see `sampleTicksOf`. */
function inSampleTicks(track: InitTrack, samples: Iterable<IndexedSample>): SampleList {
  const [format] = track.formats;
  const timescale = sampleTicksOf(format!);
  const ratio = timescale / format!.timescale;
  if (ratio === 1) return new SampleList(track, samples);
  const scale = (ticks: number) => Math.round(ticks * ratio);
  const formats = track.formats.map(({ edits, ...each }) => ({
    ...each,
    timescale,
    ...(edits && {
      edits: edits.map((edit) => ({
        mediaTicks: scale(edit.mediaTicks),
        durationTicks: scale(edit.durationTicks),
        emptyTicks: scale(edit.emptyTicks),
      })),
    }),
  }));
  const [shiftTicks, startTicks] = [scale(track.shiftTicks), scale(track.startTicks)];
  return new SampleList({ ...track, formats, shiftTicks, startTicks }, scaled(samples, scale));
}

function* scaled(samples: Iterable<IndexedSample>, scale: (ticks: number) => number): Generator<IndexedSample> {
  for (const sample of samples) {
    const { dts, pts, duration } = sample;
    const end = scale(dts + duration);
    yield { ...sample, dts: scale(dts), pts: scale(pts), duration: end - scale(dts) };
  }
}

type ChooseTracks = (tracks: readonly RankedTrack[]) => readonly InitTrack[];

/** Returns the samples of the chosen tracks in the index of an MP4 file; default: of all that are played. @throws ServiceError `upstream_invalid` */
export function readSampleLists(
  file: OpenFile,
  choose: ChooseTracks = (all) => [...playedOf(all, "video"), ...playedOf(all, "audio")],
): SampleList[] {
  checkSampleTables(numbersInFile(file.fd));
  const bytes = readIndex(file);
  const budget = createBudget(file.size, maxFileSamples);
  const tracks = choose(readAllTracks(bytes, firstBox(bytes)));
  requireUsualRates(tracks);
  return tracks.map((track) => inSampleTicks(track, readSampleTables(bytes, [track], budget)));
}

/** Returns the tracks of a kind that players can take, the first one that they take first. */
export function playedOf(all: readonly RankedTrack[], kind: TrackKind): RankedTrack[] {
  const ranked = all.filter(({ formats: [format] }) => format?.kind === kind).toSorted((a, b) => a.rank - b.rank);
  return ranked.filter(({ rank }, index) => rank < 2 || index === 0);
}
