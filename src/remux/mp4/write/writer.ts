import { ServiceError } from "../../../model/errors.ts";
import { type Additions, boundAdditions, noAdditions } from "../../additions.ts";
import { type Fragment, Fragments } from "./fragments.ts";
import { indexBoxes, movieDuration, startS } from "./index-boxes.ts";
import { MediaData } from "./media-data.ts";
import { userData } from "./tags.ts";
import { writeTexts } from "./text-track.ts";
import { type TrackIndex, TrackWriter } from "./track.ts";
import type { SampleSink } from "../../samples.ts";

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
 * Opens a sink that writes samples into one MP4 file (ISO/IEC 14496-12) with its index in front. Uses about 10 MiB of memory,
 * 22 MiB after `drain`, plus at most 24 bytes per sample. After an error of any function the file is removed, and what
 * is written later throws the same error.
 * @throws the file system's own errors; from every function also ServiceError `too_large` beyond `maxBytes`, and
 * `upstream_invalid` for samples that no MP4 can hold.
 */
export function openMp4Writer(options: Mp4WriterOptions) {
  const { path, expectedS, maxBytes = Number.MAX_SAFE_INTEGER, additionBytes = () => 0 } = options;
  const tracks: TrackWriter[] = [];
  const reserveBytes = () => estimateIndexBytes(indexesOf(tracks), expectedS) + additionBytes();
  const media = new MediaData({ path, maxBytes, reserveBytes, onMove: options.onMove });
  let fragments: Fragments | undefined;
  let hasEnded = false;
  const append = (chunk: Uint8Array): number => media.append(chunk);

  function discardAndThrow(error: unknown): never {
    media.discard(error);
    throw error;
  }

  /** Removes the file if `call` throws. */
  function guarded<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      return discardAndThrow(error);
    }
  }

  function trackAt(number: number): TrackWriter {
    const track = tracks[number];
    if (track === undefined) throw new RangeError(`there is no track ${number}`);
    return track;
  }

  const sink: SampleSink = {
    setFormat: (format, track) =>
      guarded(() => {
        if (track === undefined) return tracks.push(new TrackWriter(format, append)) - 1;
        trackAt(track).setFormat(format);
        return track;
      }),
    write: (track, sample) => guarded(() => trackAt(track).write(sample)),
  };
  return {
    ...sink,
    /** Returns the bytes of the media data so far. */
    get size(): number {
      return media.size;
    },
    /**
     * From its first call on, samples are written to the file in other threads. Resolves once few of them are left; a
     * `write` that would leave too many waits for the disk itself.
     */
    drain: (): Promise<void> => media.writes.drain().catch(discardAndThrow),
    /** Resolves once all samples are written that fill a buffer; to be awaited between `drain` and `finish`. */
    settle: (): Promise<void> => media.writes.settle().catch(discardAndThrow),
    /**
     * Ends the tracks; returns when what is presented starts, on the timeline of the samples, seconds.
     * @throws ServiceError `upstream_invalid` if no sample was written.
     */
    end: () =>
      guarded(() => {
        hasEnded = true;
        for (const track of tracks) track.end();
        return Math.min(...presentedIndexes(tracks).map(startS));
      }),
    /** Ends the chunks, so that the samples so far can be published before the next ones come. */
    cut: () =>
      guarded(() => {
        for (const track of tracks) track.cut();
      }),
    /**
     * Returns the next fragments of the file, from its first one on, for whoever reads it while it is being written; their media
     * data are in the file, at these offsets. None if there are none yet, undefined if what was written cannot be expressed in
     * fragments: samples are hidden, which a stream would show, or a track or a sample entry came late.
     *
     * @param isComplete There will be no further tracks; before that, and before each has samples, there are no fragments.
     */
    async publish(isComplete: boolean): Promise<Fragment[] | undefined> {
      if (tracks.some(({ hasHiddenTime }) => hasHiddenTime)) return undefined;
      const isReady = isComplete && (hasEnded || tracks.every(({ isPresented }) => isPresented));
      if (fragments === undefined && !isReady) return [];
      fragments ??= startFragments(tracks, expectedS);
      const made = fragments.take();
      if (fragments.isBroken || fragments.trackCount < tracks.length) return undefined;
      if (made.length === 0) return made;
      const start = await media.publish().catch(discardAndThrow);
      return made.map(({ offset, ...fragment }) => ({ ...fragment, offset: start + offset }));
    },
    /**
     * Completes and closes the file; flushing it to the disk is left to the caller. Returns its bytes, its duration, and
     * its pixels as shown, `null` without video.
     * @throws ServiceError `upstream_invalid` if no sample was written.
     */
    finish: (additions: Additions = noAdditions) => guarded(() => finish(tracks, media, additions)),
    /** Closes and removes the file; does nothing after `finish` or an error. */
    discard: (): void => media.discard(),
  };
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
