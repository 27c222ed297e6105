import { ServiceError } from "../../../errors.ts";
import { diskError } from "../../../files/disk-error.ts";
import { movieDuration, indexBoxes } from "./index-boxes.ts";
import { createMediaData, type MediaData, type MediaDataOptions } from "./media-data.ts";
import { createMp4Track, type Mp4Track, type TrackIndex } from "./track.ts";
import type { SampleSink } from "../../samples.ts";

/**
 * Writes one MP4 (ISO/IEC 14496-12) with its index in front, as the samples come: some 10 MiB of memory
 * and 24 bytes a sample at most, whatever the size of the file. All of it is synchronous.
 */
export interface Mp4Writer extends SampleSink {
  /**
   * Completes the file; that it is on the disk is left to the caller (fsync).
   * @throws ServiceError `upstream_invalid` where no sample was written.
   */
  finish(): Mp4File;
  /** Closes and removes the file; does nothing once it is finished or gone. */
  discard(): void;
}

export interface Mp4WriterOptions {
  /** Is made, or replaced where it is there. */
  path: string;
  /** How long the presentation will be, seconds; `null`: unknown. A guess that is too short costs a copy. */
  expectedS: number | null;
  /** Limit of the media data, bytes; none where it is left out. */
  maxBytes?: number;
}

export interface Mp4File {
  /** Bytes. */
  size: number;
  durationS: number;
  /** Pixels as shown; `null` without pictures. */
  width: number | null;
  height: number | null;
}

/**
 * After an error of any of its functions the file is gone, and the writer is of no more use.
 * @throws ServiceError `disk_full`, else `unavailable`, where the file system fails; `too_large` beyond
 * `maxBytes`; `upstream_invalid` for samples that no MP4 can hold.
 */
export function openMp4Writer({ path, expectedS, maxBytes }: Mp4WriterOptions): Mp4Writer {
  const tracks: Mp4Track[] = [];
  const reserveBytes = (): number => roomFor(indexesOf(tracks), expectedS);
  const media = openMediaData({
    path,
    maxBytes: maxBytes ?? Number.MAX_SAFE_INTEGER,
    reserveBytes,
  });

  function discard(): void {
    try {
      media.discard();
    } catch (error) {
      throw diskError(`remove ${path}`, error);
    }
  }

  /** `call`; where it fails the file is removed. */
  function guarded<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      discard();
      throw diskError(`write ${path}`, error);
    }
  }

  function trackAt(number: number): Mp4Track {
    const track = tracks[number];
    if (track === undefined) throw new RangeError(`there is no track ${number}`);
    return track;
  }

  return {
    setFormat: (format, track) =>
      guarded(() => {
        if (track === undefined) return tracks.push(createMp4Track(format, media.append)) - 1;
        trackAt(track).setFormat(format);
        return track;
      }),
    write: (track, sample) => guarded(() => trackAt(track).write(sample)),
    finish: () => guarded(() => finish(tracks, media)),
    discard,
  };
}

function openMediaData(options: MediaDataOptions): MediaData {
  try {
    return createMediaData(options);
  } catch (error) {
    throw diskError(`create ${options.path}`, error);
  }
}

function indexesOf(tracks: readonly Mp4Track[]): TrackIndex[] {
  return tracks.map((track) => track.index()).filter((index) => index !== undefined);
}

function finish(tracks: readonly Mp4Track[], media: MediaData): Mp4File {
  for (const track of tracks) track.flush();
  const index = indexesOf(tracks);
  if (index.length === 0) {
    throw new ServiceError("upstream_invalid", "there is nothing in it: no track has a sample");
  }
  const size = media.finish((start) => indexBoxes(index, { start, size: media.size }));
  const video = index.find(({ format }) => format.kind === "video")?.format;
  const { width = null, height = null } = video ?? {};
  return { size, durationS: movieDuration(index), width, height };
}

/** Bytes: what the first seconds' index takes, for the whole length and half as much again. */
function roomFor(index: readonly TrackIndex[], expectedS: number | null): number {
  const seenS = index.length === 0 ? 0 : movieDuration(index);
  const takenBytes = index.length === 0 ? 0 : indexBoxes(index, { start: 0, size: 0 }).length;
  const bytesPerS = seenS < 1 ? unseenBytesPerS : 1.5 * (takenBytes / seenS);
  const missing = index.some(({ format }) => format.kind === "audio") ? 0 : unseenAudioBytesPerS;
  const wanted = marginBytes + (bytesPerS + missing) * (expectedS ?? 0);
  return Math.ceil(Math.min(wanted, maxRoomBytes));
}

const marginBytes = 64 << 10;
const maxRoomBytes = 32 << 20;
/** 60 pictures a second that need 20 bytes each. */
const unseenBytesPerS = 1200;
/** 50 audio samples a second that need 8 bytes each. */
const unseenAudioBytesPerS = 400;
