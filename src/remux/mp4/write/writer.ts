import { ServiceError } from "../../../model/errors.ts";
import { type Additions, boundAdditions, noAdditions } from "../../additions.ts";
import { type Fragment, Fragments } from "./fragments.ts";
import { indexBoxes, movieDuration, startS } from "./index-boxes.ts";
import { MediaData } from "./media-data.ts";
import { userData } from "./tags.ts";
import { writeTexts } from "./text-track.ts";
import { type TrackIndex, TrackWriter } from "./track.ts";
import type { Sample, SampleSink, TrackFormat } from "../../samples.ts";

export interface Mp4WriterOptions {
  /** Is created or overwritten. */
  path: string;
  /**
   * Estimated duration of the presentation, seconds; `null`: unknown. Fragments state it. Space for the index is reserved by
   * it; if that is too little, the media data are copied once.
   */
  expectedS: number | null;
  /** Limit of the media data, bytes; default: none. */
  maxBytes?: number;
  /** Returns how many bytes of additions `finish` is likely to get; default: none. Called once, after 4 MiB of media, or at the first `publish`. */
  additionBytes?: () => number;
  /**
   * Called with `null` when `finish` is about to move the media data in the file because too little space was reserved, then with
   * how many bytes it has moved them up; default: nothing.
   */
  onMove?: ((by: number | null) => void) | undefined;
}

/**
 * A sink that writes samples into one MP4 file (ISO/IEC 14496-12) with its index in front. Uses about 10 MiB of memory,
 * 22 MiB after `drain`, plus at most 24 bytes per sample. After an error of any method the file is removed, and what
 * is written later throws the same error.
 *
 * Every method throws the file system's own errors, and ServiceError `too_large` beyond `maxBytes` and `upstream_invalid` for samples
 * that no MP4 can hold.
 */
export class Mp4Writer implements SampleSink {
  readonly #tracks: TrackWriter[] = [];
  readonly #media: MediaData;
  readonly #expectedS: number | null;
  #fragments: Fragments | undefined;
  #hasEnded = false;

  /** Creates or overwrites the file. */
  constructor({
    path,
    expectedS,
    maxBytes = Number.MAX_SAFE_INTEGER,
    additionBytes = () => 0,
    onMove,
  }: Mp4WriterOptions) {
    const reserveBytes = () => estimateIndexBytes(indexesOf(this.#tracks), expectedS) + additionBytes();
    this.#media = new MediaData({ path, maxBytes, reserveBytes, onMove });
    this.#expectedS = expectedS;
  }

  setFormat(format: TrackFormat, track?: number): number {
    return this.#guard(() => {
      if (track === undefined)
        return this.#tracks.push(new TrackWriter(format, (chunk) => this.#media.append(chunk))) - 1;
      this.#trackAt(track).setFormat(format);
      return track;
    });
  }

  write(track: number, sample: Sample): void {
    this.#guard(() => this.#trackAt(track).write(sample));
  }

  /** Bytes of the media data so far. */
  get size(): number {
    return this.#media.size;
  }

  /**
   * From its first call on, samples are written to the file in other threads. Resolves once few of them are left; a
   * `write` that would leave too many waits for the disk itself.
   */
  drain(): Promise<void> {
    return this.#guardPromise(this.#media.writes.drain());
  }

  /** Resolves once all samples are written that fill a buffer; to be awaited between `drain` and `finish`. */
  settle(): Promise<void> {
    return this.#guardPromise(this.#media.writes.settle());
  }

  /**
   * Ends the tracks; returns when what is presented starts, on the timeline of the samples, seconds.
   * @throws ServiceError `upstream_invalid` if no sample was written.
   */
  end(): number {
    return this.#guard(() => {
      this.#hasEnded = true;
      for (const track of this.#tracks) track.end();
      return Math.min(...presentedIndexes(this.#tracks).map(startS));
    });
  }

  /** Ends the chunks, so that the samples so far can be published before the next ones come. */
  cut(): void {
    this.#guard(() => {
      for (const track of this.#tracks) track.cut();
    });
  }

  /**
   * Returns the next fragments of the file, from its first one on, for readers while it is being written; their media
   * data are in the file, at these offsets. None if there are none yet, undefined if what was written cannot be expressed in
   * fragments: samples are hidden, which a stream would show, or a track or a sample entry came late.
   *
   * @param isComplete There will be no further tracks; before that, and before each has samples, there are no fragments.
   */
  async publish(isComplete: boolean): Promise<Fragment[] | undefined> {
    const tracks = this.#tracks;
    if (tracks.some(({ hasHiddenTime }) => hasHiddenTime)) return undefined;
    const isReady = isComplete && (this.#hasEnded || tracks.every(({ isPresented }) => isPresented));
    if (this.#fragments === undefined && !isReady) return [];
    const fragments = (this.#fragments ??= startFragments(tracks, this.#expectedS));
    const made = fragments.take();
    if (fragments.isBroken || fragments.trackCount < tracks.length) return undefined;
    if (made.length === 0) return made;
    const start = await this.#guardPromise(this.#media.publish());
    return made.map(({ offset, ...fragment }) => ({ ...fragment, offset: start + offset }));
  }

  /**
   * Completes and closes the file; the caller flushes it to the disk. Returns its bytes, its duration, and
   * its pixels as shown, `null` without video.
   * @throws ServiceError `upstream_invalid` if no sample was written.
   */
  finish(additions: Additions = noAdditions) {
    return this.#guard(() => finish(this.#tracks, this.#media, additions));
  }

  /** Closes and removes the file; does nothing after `finish` or an error. */
  discard(): void {
    this.#media.discard();
  }

  #trackAt(number: number): TrackWriter {
    const track = this.#tracks[number];
    if (track === undefined) throw new RangeError(`there is no track ${number}`);
    return track;
  }

  /** Removes the file if `call` throws. */
  #guard<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      return this.#discardAndThrow(error);
    }
  }

  #guardPromise<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => this.#discardAndThrow(error));
  }

  #discardAndThrow(error: unknown): never {
    this.#media.discard(error);
    throw error;
  }
}

function indexesOf(tracks: readonly TrackWriter[]): TrackIndex[] {
  return indexesByNumber(tracks).filter((index) => index !== undefined);
}

/** Returns the index of each track; undefined for one of which nothing is presented. */
function indexesByNumber(tracks: readonly TrackWriter[]): (TrackIndex | undefined)[] {
  const videos = tracks.filter(({ kind }) => kind === "video").map((track) => track.index(Infinity));
  const starts = videos.map((index) => (index === undefined ? Infinity : startS(index)));
  const videoStartS = Math.min(...starts);
  return tracks.map((track) => track.index(videoStartS));
}

function startFragments(tracks: readonly TrackWriter[], expectedS: number | null): Fragments {
  const indexes = indexesByNumber(tracks);
  const sources = tracks.map((track, number) => ({ index: indexes[number], chunks: track.readChunks() }));
  return new Fragments(sources, expectedS);
}

/** @throws ServiceError `upstream_invalid` if there is no sample. */
function presentedIndexes(tracks: readonly TrackWriter[]): TrackIndex[] {
  const index = indexesOf(tracks);
  if (index.length > 0) return index;
  throw new ServiceError("upstream_invalid", "the media have no samples");
}

function finish(tracks: readonly TrackWriter[], media: MediaData, given: Additions) {
  for (const track of tracks) track.flush();
  const index = presentedIndexes(tracks);
  const output = { append: (bytes: Uint8Array) => media.append(bytes), durationS: movieDuration(index) };
  const additions = boundAdditions(given, output.durationS);
  const texts = writeTexts(additions, output).filter(({ sizes }) => sizes.length > 0);
  const further = { texts, userData: userData(additions) };
  const size = media.finish((start) => indexBoxes(index, { start, size: media.size }, further));
  const video = index.find(({ format }) => format.kind === "video")?.format;
  const { width = null, height = null } = video ?? {};
  return { size, durationS: movieDuration(index), width, height };
}

/** Scales the size of the index so far to the expected duration, and adds a half. */
function estimateIndexBytes(index: readonly TrackIndex[], expectedS: number | null): number {
  const writtenS = index.length === 0 ? 0 : movieDuration(index);
  const writtenBytes = index.length === 0 ? 0 : indexBoxes(index, { start: 0, size: 0 }).length;
  const bytesPerS = writtenS < 1 ? defaultBytesPerS : 1.5 * (writtenBytes / writtenS);
  const hasAudio = index.some(({ format }) => format.kind === "audio");
  const audioBytesPerS = hasAudio ? 0 : defaultAudioBytesPerS;
  const bytes = marginBytes + (bytesPerS + audioBytesPerS) * (expectedS ?? 0);
  return Math.ceil(Math.min(bytes, maxReservedBytes));
}

const marginBytes = 64 << 10;
const maxReservedBytes = 32 << 20;
/** 60 frames a second of 20 bytes each. */
const defaultBytesPerS = 1200;
/** 50 audio samples a second of 8 bytes each. */
const defaultAudioBytesPerS = 400;
