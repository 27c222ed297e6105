import type { AudioChoice } from "./audio-choice.ts";
import type { Timelines } from "./timelines.ts";

export const trackKinds = ["video", "audio"] as const;
export type TrackKind = (typeof trackKinds)[number];

/**
 * What demuxers write and the MP4 writer takes. Times are integers in ticks of the track's own timescale,
 * on one presentation timeline for all tracks, and may be negative or start late: the writer moves the
 * earliest presentation time of all tracks to 0 and keeps their distances (edit lists). Priming of an audio decoder is
 * kept, but not presented: `primingTicks`, or else audio shortly before time 0, unless video is presented before it too.
 */
export interface TrackFormat {
  kind: TrackKind;
  /** Ticks per second, a positive integer below 2^32. */
  timescale: number;
  /** A SampleEntry box (ISO/IEC 14496-12 §8.5.2): `avc1`, `hvc1`, `av01`, `mp4a` … */
  sampleEntry: Uint8Array;
  /** Pixels as shown, before `matrix`; 0 for audio. */
  width: number;
  height: number;
  /** Rotation and reflection of the video as in `tkhd` (§8.3.2); default: none. */
  matrix?: readonly number[];
  /**
   * What of the media is presented; default: all. It holds for a track of one format; of one that continues
   * in another format, only what is before the first edit is left out.
   */
  edits?: readonly Edit[];
  /** How much at the end of its last samples is padding of the encoder, which is not presented, ticks; default: none. */
  paddingTicks?: number;
  /** BCP 47; `null`: unknown. */
  language: string | null;
  /** For people; default: none. */
  name?: string;
  /** A UserDataBox (§8.10.1) with what its source says of it besides: what it is for (`kind`), its title …; default: none. */
  userData?: Uint8Array;
  /** The audio tracks of the output are in the order of their places, those of one place as they came; default: 0. */
  place?: number;
}

/** A part of the media that is presented (§8.6.6). All in ticks of the track. */
export interface Edit {
  /** Where the part starts, from the decode time of the track's first sample. */
  mediaTicks: number;
  /** Infinity: to the end. */
  durationTicks: number;
  /** How long nothing is presented before it. */
  emptyTicks: number;
}

export interface Sample {
  /** One access unit as an MP4 file has it (length-prefixed NAL units, raw AAC …). */
  data: Uint8Array;
  /** Ticks. Within a track they increase; the writer corrects those that do not. */
  dts: number;
  pts: number;
  /** Ticks; 0: until the track's next sample. */
  duration: number;
  /** Decoding can start here. */
  isSync: boolean;
  /** It is only needed to decode others; default: it is presented. */
  isHidden?: boolean;
  /** How much at its start is priming of the decoder, ticks; default: what its time says. */
  primingTicks?: number;
  /** What its source says of how it is decoded; default: nothing. */
  groups?: readonly SampleGroup[];
  /** Its source says neither when it is decoded nor when it is shown, and its pictures are not shown in the order of decoding. */
  isGuessed?: boolean;
  /** Its media time does not follow that of the sample before, because one of them is hidden. */
  isJump?: boolean;
}

/**
 * A group that samples of an MP4 are in (ISO/IEC 14496-12 §8.9, §10): decoding may start at them if output starts later or
 * others are decoded before (`roll`, `prol`), or if those that are presented before them are left out (`rap `).
 */
export interface SampleGroup {
  type: "roll" | "prol" | "rap ";
  /** Its description, a character for each byte. */
  description: string;
}

/** Takes the samples of one or more tracks; copies or writes their data before it returns. */
export interface SampleSink {
  /**
   * Adds a track, or sets the format of the next samples of `track` (another sample entry after a
   * discontinuity; kind and timescale stay). Returns the track's number.
   */
  setFormat(format: TrackFormat, track?: number): number;
  write(track: number, sample: Sample): void;
}

/** Takes samples of any track, and keeps none. */
export const nullSink: SampleSink = { setFormat: (_format, track) => track ?? 0, write() {} };

export interface DemuxerOptions {
  sink: SampleSink;
  timelines: Timelines;
  /** Tracks of these kinds are read: the first usable one with video, and the audio that is chosen. All others are left out. */
  kinds: readonly TrackKind[];
  /** Default: the first track. */
  audio?: AudioChoice;
  /** Called when media of a track are left out: damaged, or impossible to decode. */
  onDrop?: (kind: TrackKind) => void;
  /** Called when the tracks are known; again with a kind of which there is one by its packets that no table describes. */
  onTracks?: (found: FoundTracks) => void;
  /** Called with when video is presented that is not wanted, on the timeline of what is written. */
  onUnread?: (span: MediaRange) => void;
  /** Called when the subtitles of a transport stream are known, which are not read. */
  onSubtitles?: (tracks: readonly UnreadSubtitles[]) => void;
}

/** The tracks that a header or a program map lists. */
export interface FoundTracks {
  /** Kinds of those that are read, or should be; of an MP4 with an index, only if that lists samples of the kind. */
  kinds: readonly TrackKind[];
  /** How many audio tracks are read. */
  audio: number;
  /** How many tracks of these kinds are not. */
  left: Readonly<Record<TrackKind, number>>;
}

/** Subtitles that are not read. */
export interface UnreadSubtitles {
  /** BCP 47; `null`: unknown. */
  language: string | null;
  /** What people call it. */
  codec: string;
}

/** Reads one stream, segment by segment in order, and writes its samples into a sink. */
export interface Demuxer {
  /**
   * Reads a segment, already decrypted (init sections are segments too), or, of a container that can be
   * cut anywhere, the next bytes of the stream. None at all begin a timeline: what is held back of the one before is written.
   * @throws ServiceError `upstream_invalid` if it is of another container or damaged beyond reading;
   * `format_unavailable` for a codec that an MP4 cannot hold; `drm_protected`. SkipError.
   */
  read(segment: Uint8Array, timing: SegmentTiming): void;
  /**
   * Returns the media time at which a timeline begins with this segment, seconds: what `read` will tell the timelines, without
   * reading it. `null`: its media state none; undefined: it has no media.
   * @throws as `read`
   */
  firstTime(segment: Uint8Array): number | null | undefined;
  /**
   * Only of MP4: reads a segment or file of any size; each step reads a bounded part of it. Yields after each, and before it reads what a
   * growing file may lack so far: how many bytes of that it needs.
   */
  readFile?(file: MediaFile, timing: SegmentTiming): Generator<number | undefined, void>;
  /** Writes what is held back (the last access units). */
  flush(): void;
}

/** A file that a demuxer reads itself. */
export interface MediaFile {
  path: string;
  /** Where the samples are that it has, in order and apart from each other; default: all that its index lists. */
  within?: readonly ByteSpan[] | undefined;
  /** Its index is known, and it is being written at its end; default: it is complete. */
  growth?: FileGrowth;
}

export interface FileGrowth {
  /** How many bytes the file will have. */
  totalBytes: number;
  /** The index, if it is at the end of the file; absent: it is there. */
  index?: Uint8Array;
  /** Resolves once it has this many. Rejects if it never will. */
  until(bytes: number): Promise<void>;
}

/** Bytes of a file from `start` to before `end`. */
export interface ByteSpan {
  start: number;
  end: number;
}

/** Returns the spans in order, as one where at most `maxGap` bytes, by default none, are between them. */
export function joinSpans(spans: readonly ByteSpan[], maxGap = 0): ByteSpan[] {
  const found: ByteSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = found.at(-1);
    if (last !== undefined && span.start <= last.end + maxGap) last.end = Math.max(last.end, span.end);
    else found.push({ ...span });
  }
  return found;
}

/** Returns the index of the first of sorted items for which `isAfter` holds, as for all after it; their number if it holds for none. */
export function sortedIndex<T>(items: ArrayLike<T>, isAfter: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAfter(items[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** What has the indexes from one to before another one. */
export interface IndexRun {
  from: number;
  to: number;
}

/** Returns the runs in order, as one where they touch. */
export function joinRuns(runs: readonly IndexRun[]): IndexRun[] {
  const spans = joinSpans(runs.map(({ from, to }) => ({ start: from, end: to })));
  return spans.map(({ start, end }) => ({ from: start, to: end }));
}

/** A part of a presentation, seconds. */
export interface MediaRange {
  startS: number;
  /** Infinity: to the end. */
  endS: number;
}

/** Returns from where to where these are; `null`: there is none. */
export function spanOf(ranges: readonly MediaRange[]): MediaRange | null {
  const join = (a: MediaRange, b: MediaRange): MediaRange => {
    return { startS: Math.min(a.startS, b.startS), endS: Math.max(a.endS, b.endS) };
  };
  return ranges.reduce<MediaRange | null>((span, range) => (span === null ? range : join(span, range)), null);
}

/** Where a segment is in the presentation. */
export interface SegmentTiming {
  timeline: number;
  /** Seconds to add to its media times, if the manifest has it; else `null`. */
  offsetS: number | null;
  /** When its media may be presented, presentation times in seconds; default: always. */
  span?: MediaRange;
  /** If its media end so little after `span`, seconds, they are presented; default: none are. */
  endSlackS?: number;
  /** How long it lasts by its manifest, seconds; default: unknown. */
  durationS?: number;
  /** Its number in its list: segments without media leave theirs out; default: unknown. */
  sequence?: number;
  /** How long the segments last that were left out right before it, seconds; default: none were. */
  skippedS?: number;
}
