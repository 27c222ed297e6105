import { isUpstreamError, ServiceError } from "../../../model/errors.ts";
import { GrowthError } from "../partial/growing-file.ts";
import { checkAbsent, type SourceStream } from "../sources/source-stream.ts";
import type { SourceName } from "../sources/plan.ts";
import { CountingSink } from "./counting-sink.ts";
import type { TrackStats } from "./track-stats.ts";
import { createMp4Demuxer } from "../../../remux/mp4/read/demuxer.ts";
import { createMpegTsDemuxer } from "../../../remux/mpeg-ts/demuxer.ts";
import { createPackedAudioDemuxer } from "../../../remux/packed-audio/demuxer.ts";
import {
  type Demuxer,
  type DemuxerOptions,
  type FoundTracks,
  type MediaRange,
  type SegmentTiming,
  type TrackKind,
  trackKinds,
  type UnreadSubtitles,
} from "../../../remux/samples.ts";
import type { Container } from "../../../remux/sniff.ts";
import type { Timelines } from "../../../remux/timelines.ts";
import { withOpusTimes } from "../../../remux/track-details.ts";

/** What was written into a file. */
export interface Written {
  tracks: readonly WrittenTrack[];
  /** How often media of a kind were left out: damaged, or impossible to decode. */
  drops: Readonly<Record<TrackKind, number>>;
  listed: readonly TrackKind[];
  /** Tracks of the sources, of kinds that it has, that are not in it. */
  left: FoundTracks["left"];
  /** Start of the file on the timeline of the tracks, seconds. */
  originS: number;
  shortEnds: readonly ShortEnd[];
  /** Of the sources; they are not in it. */
  subtitles: readonly UnreadSubtitles[];
}

export interface WrittenTrack extends TrackStats {
  source: SourceName;
  /** What its source presents of video that is not wanted; `null` and default: nothing. */
  unread?: MediaRange | null;
}

/** The last segment of a source, or those before discontinuities, last less than its list says. */
interface ShortEnd {
  source: SourceName;
  missingS: number;
  /** How many there are before discontinuities; `null`: it is the last one. */
  before: number | null;
}

const demuxers = new Map<Container | null, (options: DemuxerOptions) => Demuxer>([
  ["mp4", createMp4Demuxer],
  ["mpeg-ts", createMpegTsDemuxer],
  ["packed-audio", createPackedAudioDemuxer],
]);

/** Whether `remux` can read its container. */
export const isRemuxable = ({ container }: SourceStream): boolean => demuxers.has(container);

/** A stream that is being demuxed, and what has been written of it so far. */
export class DemuxSession {
  readonly counts: CountingSink;
  hasEnded = false;
  /** Where it continues, seconds. */
  nextS = 0;
  /** The timeline that it begins next; `null`: it continues in the same one. */
  start: TimelineStart | null = null;
  readonly listed = new Set<TrackKind>();
  /** Those that the source has, and that are not read. */
  subtitles: readonly UnreadSubtitles[] = [];
  #audioTracks = 0;
  readonly #stream: SourceStream;
  readonly #steps: AsyncGenerator<TimelineStart | undefined, void, undefined>;

  /** @param isMerged The stream was made of others by mediabunny. */
  constructor(
    stream: SourceStream,
    {
      isMerged,
      ...options
    }: Omit<DemuxerOptions, "onDrop" | "onTracks" | "onUnread" | "onSubtitles"> & { isMerged: boolean },
  ) {
    const counts = new CountingSink(options.sink);
    const onDrop = (kind: TrackKind) => counts.drop(kind);
    this.counts = counts;
    this.#stream = stream;
    const onTracks = ({ kinds, audio, left }: FoundTracks): void => {
      for (const kind of kinds) this.listed.add(kind);
      for (const kind of trackKinds) counts.left[kind] = Math.max(counts.left[kind], left[kind]);
      this.#audioTracks = audio;
    };
    const onUnread = (span: MediaRange) => counts.noteUnread(span);
    const onSubtitles = (tracks: readonly UnreadSubtitles[]): void => {
      if (tracks.length > this.subtitles.length) this.subtitles = tracks;
    };
    this.#steps = demux(
      stream,
      { ...options, sink: isMerged ? withOpusTimes(counts) : counts, onDrop, onTracks, onUnread, onSubtitles },
      counts,
    );
  }

  /** @throws GrowthError if its file cannot be read while it is fetched; ServiceError of the demuxer and the stream */
  async step(): Promise<void> {
    const { done, value } = await this.#steps.next().catch((error: unknown) => {
      const { complete } = this.#stream;
      throw complete !== undefined && isUpstreamError(error) ? new GrowthError(complete, error) : error;
    });
    this.hasEnded = done === true;
    this.start = value ?? null;
    // A timeline begins where all sources have ended the one before, which they do within a second.
    this.nextS = this.counts.reachedS + (this.start === null ? 0 : 1);
  }

  /** Whether a track has been added, and all that are read if there are several audio tracks. */
  get hasTrack(): boolean {
    const audio = this.counts.count("audio");
    return audio + this.counts.count("video") > 0 && (this.#audioTracks < 2 || audio >= this.#audioTracks);
  }

  tracks(): WrittenTrack[] {
    return this.counts.tracks().map((track) => ({ ...track, source: this.#stream.name, unread: this.counts.unread }));
  }

  /** Returns what is missing before discontinuities and at the end. */
  shortEnds(): ShortEnd[] {
    const { name: source } = this.#stream;
    const missing = this.counts.missingBeforeS();
    const before = { source, missingS: missing.reduce((sum, each) => sum + each, 0), before: missing.length };
    const last = { source, missingS: this.counts.missingEndS(), before: null };
    return [before, last].filter(({ missingS }) => missingS > 0);
  }

  /** Stops reading and closes the stream. */
  async close(): Promise<void> {
    await this.#steps.return();
    await this.#stream.chunks.return?.();
  }
}

/** Returns the session whose next media come first; undefined once all have ended. */
export const leastAdvanced = (sessions: readonly DemuxSession[]): DemuxSession | undefined =>
  sessions.filter(({ hasEnded }) => !hasEnded).toSorted((a, b) => a.nextS - b.nextS)[0];

interface TimelineStart {
  timeline: number;
  /** Media time, seconds; `null`: unknown. */
  firstS: number | null;
}

/** Returns what the sessions have written together, and what they have left out. */
export function summarize(sessions: readonly DemuxSession[]): Omit<Written, "originS"> {
  const sum = (what: "drops" | "left", kind: TrackKind) =>
    sessions.reduce((all, { counts }) => all + counts[what][kind], 0);
  return {
    tracks: sessions.flatMap((session) => session.tracks()),
    drops: { video: sum("drops", "video"), audio: sum("drops", "audio") },
    listed: [...new Set(sessions.flatMap(({ listed }) => [...listed]))],
    left: { video: sum("left", "video"), audio: sum("left", "audio") },
    shortEnds: sessions.flatMap((session) => session.shortEnds()),
    subtitles: sessions.flatMap(({ subtitles }) => subtitles),
  };
}

/** Places the timeline that a session begins next, if all others begin it too, or if they do not and its media times go on. */
export function joinTimelines(session: DemuxSession, sessions: readonly DemuxSession[], timelines: Timelines): void {
  const { start } = session;
  if (start === null) return;
  const all = sessions.filter(({ hasEnded }) => !hasEnded);
  const joined = all.flatMap(({ start: own, counts: { endS } }) =>
    own?.timeline === start.timeline && own.firstS !== null ? [{ firstS: own.firstS, endS }] : [],
  );
  if (all.length > 1 && joined.length === all.length) timelines.join(start.timeline, joined);
  else if (start.firstS !== null)
    timelines.keepOffset(start.timeline, { firstS: start.firstS, endS: session.counts.endS });
}

/**
 * Reads one chunk, of a file a bounded part, at each step. Before the first media of a timeline that has no offset in its manifest, it yields
 * where that begins.
 */
async function* demux(
  { name, container, chunks }: SourceStream,
  options: DemuxerOptions,
  counts: CountingSink,
): AsyncGenerator<TimelineStart | undefined, void, undefined> {
  const demuxer = demuxers.get(container)?.(options);
  if (demuxer === undefined)
    throw new ServiceError("upstream_invalid", `the ${name} stream has no supported container`);
  let latest: SegmentTiming | undefined;
  let isJoining = false;
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    if ("error" in next.value) {
      checkAbsent(next.value, counts.reachedS);
      continue;
    }
    const { media, timing } = next.value;
    if (timing.skippedS !== undefined && timing !== latest) {
      demuxer.flush();
      counts.skip();
    }
    if (latest !== undefined && timing.timeline !== latest.timeline && timing.offsetS === null) {
      demuxer.read(new Uint8Array(), timing);
      isJoining = true;
    }
    if (timing !== latest) counts.startSegment(timing);
    const firstS = isJoining && media instanceof Uint8Array ? demuxer.firstTime(media) : null;
    if (isJoining && firstS !== undefined) {
      isJoining = false;
      yield { timeline: timing.timeline, firstS };
    }
    latest = timing;
    if (media instanceof Uint8Array) {
      demuxer.read(media, timing);
      yield;
    } else if (demuxer.readFile !== undefined) {
      for (const neededBytes of demuxer.readFile(media, timing)) {
        if (neededBytes === undefined) yield;
        else await media.growth?.until(neededBytes);
      }
    } else {
      throw new ServiceError("upstream_invalid", `the segments of the ${name} stream are in different containers`);
    }
  }
  demuxer.flush();
}
