import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../../model/errors.ts";
import { checkAbsent, type SourceStream } from "../sources/source-stream.ts";
import type { SourceName } from "../sources/plan.ts";
import { CountingSink } from "./counting-sink.ts";
import { createPublisher, type StreamOutput } from "./publish.ts";
import type { TrackStats } from "./track-stats.ts";
import type { MediaPosition } from "../texts/place-cues.ts";
import { allAudio, type AudioChoice, firstAudio } from "../../../remux/audio-choice.ts";
import type { Additions } from "../../../remux/additions.ts";
import { createMp4Demuxer } from "../../../remux/mp4/read/demuxer.ts";
import { openMp4Writer } from "../../../remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../../remux/mpeg-ts/demuxer.ts";
import { createPackedAudioDemuxer } from "../../../remux/packed-audio/demuxer.ts";
import type { Demuxer, DemuxerOptions, SegmentTiming, TrackKind } from "../../../remux/samples.ts";
import type { Container } from "../../../remux/sniff.ts";
import { describeAudio, withDetails } from "../../../remux/track-details.ts";
import { createTimelines } from "../../../remux/timelines.ts";

export interface RemuxOptions {
  main: SourceStream;
  /** Separate audio. */
  audio: SourceStream | null;
  /** Further audio tracks. */
  otherAudio: readonly SourceStream[];
  /** Opens the audio to use if `main` turns out to have none. */
  openAudio: (() => Promise<SourceStream>) | null;
  audioOnly: boolean;
  /** Chooses among the audio tracks of `main`, or of the separate audio. */
  audioChoice: AudioChoice;
  /** Path of the MP4 file; the caller flushes it to the disk. */
  target: string;
  /** Called often with the bytes of media that the file has by now. */
  onWritten: (path: string, bytes: number) => void;
  /** Approximate duration, seconds; `null`: unknown. */
  expectedS: number | null;
  /** Limit of the file, bytes. */
  maxBytes: number;
  /** Returns what to add to the media, and before that how many bytes of it are likely. */
  additions: PendingAdditions;
  /** Gets what can be sent while the file is being written; default: nobody does. */
  stream?: StreamOutput | null;
  signal: AbortSignal;
}

/** Additions that are being fetched while the media are. */
export interface PendingAdditions {
  /** How many bytes they have, as far as that is known. */
  bytes(): number;
  /** Resolves once all were fetched, or cannot be. @throws the signal's reason if the download is aborted. */
  ready(): Promise<void>;
  /** Returns them, once they are ready, with the times of a file whose media are there. @throws as `ready` */
  get(media: MediaPosition): Promise<Additions>;
}

/** What was written into a file. */
export interface Written {
  tracks: readonly WrittenTrack[];
  /** How often media of a kind were left out: damaged, or impossible to decode. */
  drops: Readonly<Record<TrackKind, number>>;
  /** Audio tracks of the sources that are not in it. */
  left: number;
  /** Start of the file on the timeline of the tracks, seconds. */
  originS: number;
  shortEnds: readonly ShortEnd[];
}

export type WrittenTrack = TrackStats & { source: SourceName };

/** The last segment of a source lasts less than its list says. */
export interface ShortEnd {
  source: SourceName;
  missingS: number;
}

const demuxers = new Map<Container | null, (options: DemuxerOptions) => Demuxer>([
  ["mp4", createMp4Demuxer],
  ["mpeg-ts", createMpegTsDemuxer],
  ["packed-audio", createPackedAudioDemuxer],
]);

/** Whether `remux` can read its container. */
export const isRemuxable = ({ container }: SourceStream): boolean => demuxers.has(container);

/**
 * Interleaves the samples of one or two streams into one MP4 file: always reads the stream that is less
 * advanced. Removes the file if it fails. Returns what was written of each track.
 *
 * @throws ServiceError of the demuxers, the writer and the streams; `format_unavailable` if only audio is
 * wanted and there is none.
 */
export async function remux(options: RemuxOptions): Promise<Written> {
  const { main, audio, openAudio, audioOnly, target, onWritten, signal } = options;
  const { expectedS, maxBytes, additions, stream = null } = options;
  const additionBytes = () => additions.bytes();
  const onMove = (by: number | null) => stream?.journal.setShift(by);
  const writer = openMp4Writer({ path: target, expectedS, maxBytes, additionBytes, onMove });
  const timelines = createTimelines();
  let place = 0;
  const start = (source: SourceStream, kinds: readonly TrackKind[], choice = options.audioChoice) => {
    const { details, label } = source;
    const sink = describeAudio(details === undefined ? writer : withDetails(writer, details), label, place++);
    // What was converted has been chosen.
    return new DemuxSession(source, { sink, timelines, kinds, audio: details === undefined ? choice : allAudio });
  };
  const first = start(main, audioOnly ? ["audio"] : audio === null ? ["video", "audio"] : ["video"]);
  const sessions = [first];
  if (audio !== null) sessions.push(start(audio, ["audio"]));
  for (const other of options.otherAudio) sessions.push(start(other, ["audio"], firstAudio));
  let openMissingAudio = audio === null ? openAudio : null;
  const publisher =
    stream &&
    createPublisher({ ...stream, writer, path: target, sessions, hasAllSessions: () => openMissingAudio === null });
  try {
    for (;;) {
      const session = leastAdvanced(sessions);
      if (session === undefined) break;
      await session.step();
      publisher?.onStep();
      await writer.drain();
      onWritten(target, writer.size);
      signal.throwIfAborted();
      // Lets the event loop handle messages and sockets.
      await nextTurn();
      if (openMissingAudio !== null && first.counts.reachedS > 0) {
        if (!first.counts.has("audio")) sessions.push(start(await openMissingAudio(), ["audio"]));
        openMissingAudio = null;
      }
    }
    if (audioOnly && !first.counts.has("audio")) {
      throw new ServiceError("format_unavailable", "the downloaded media has no audio");
    }
    await publisher?.close();
    await writer.settle();
    const { originS } = writer.presented();
    await publisher?.finish();
    writer.finish(await additions.get({ originS, offsetOf: (timeline) => timelines.offsetOf(timeline) }));
    stream?.journal.end();
    return { ...summarize(sessions), originS };
  } catch (error) {
    await publisher?.close();
    writer.discard();
    throw error;
  } finally {
    for (const session of sessions) await session.close();
  }
}

function summarize(sessions: readonly DemuxSession[]): Omit<Written, "originS"> {
  const sum = (kind: TrackKind) => sessions.reduce((all, { counts }) => all + counts.drops[kind], 0);
  return {
    tracks: sessions.flatMap((session) => session.tracks()),
    drops: { video: sum("video"), audio: sum("audio") },
    left: sessions.reduce((all, { counts }) => all + counts.left, 0),
    shortEnds: sessions.flatMap((session) => session.shortEnd() ?? []),
  };
}

/** A stream being demuxed, and what of it was written so far. */
class DemuxSession {
  readonly counts: CountingSink;
  hasEnded = false;
  /** Where it goes on, seconds. */
  nextS = 0;
  #audioTracks = 0;
  readonly #stream: SourceStream;
  readonly #steps: AsyncGenerator<"join" | undefined, void, undefined>;

  constructor(stream: SourceStream, options: Omit<DemuxerOptions, "onDrop" | "onTracks">) {
    const counts = new CountingSink(options.sink);
    const onDrop = (kind: TrackKind) => counts.drop(kind);
    this.counts = counts;
    this.#stream = stream;
    const onTracks = (audio: number, leftAudio: number): void => {
      counts.left = Math.max(counts.left, leftAudio);
      this.#audioTracks = audio;
    };
    this.#steps = demux(stream, { ...options, sink: counts, onDrop, onTracks }, counts);
  }

  async step(): Promise<void> {
    const { done, value } = await this.#steps.next();
    this.hasEnded = done === true;
    // A timeline begins where all sources have ended the one before, which they do within a second.
    this.nextS = this.counts.reachedS + (value === "join" ? 1 : 0);
  }

  /** Whether a track has been added, and all that are read if there are several audio tracks. */
  get hasTrack(): boolean {
    const audio = this.counts.count("audio");
    return audio + this.counts.count("video") > 0 && (this.#audioTracks < 2 || audio >= this.#audioTracks);
  }

  tracks(): WrittenTrack[] {
    return this.counts.tracks().map((track) => ({ ...track, source: this.#stream.name }));
  }

  /** Returns undefined if nothing is missing at the end. */
  shortEnd(): ShortEnd | undefined {
    const missingS = this.counts.missingEndS();
    return missingS > 0 ? { source: this.#stream.name, missingS } : undefined;
  }

  /** Stops reading and closes the stream. */
  async close(): Promise<void> {
    await this.#steps.return();
    await this.#stream.chunks.return?.();
  }
}

const leastAdvanced = (sessions: readonly DemuxSession[]): DemuxSession | undefined =>
  sessions.filter(({ hasEnded }) => !hasEnded).toSorted((a, b) => a.nextS - b.nextS)[0];

/** Reads one chunk, of a file a bounded part, at each step. Before the first one of a timeline that has no offset in its manifest is a "join". */
async function* demux(
  { name, container, chunks }: SourceStream,
  options: DemuxerOptions,
  counts: CountingSink,
): AsyncGenerator<"join" | undefined, void, undefined> {
  const demuxer = demuxers.get(container)?.(options);
  if (demuxer === undefined)
    throw new ServiceError("upstream_invalid", `the ${name} stream has no supported container`);
  let latest: SegmentTiming | undefined;
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
    if (timing !== latest) counts.startSegment(timing);
    if (latest !== undefined && timing.timeline !== latest.timeline && timing.offsetS === null) {
      demuxer.read(new Uint8Array(), timing);
      yield "join";
    }
    latest = timing;
    if (media instanceof Uint8Array) {
      demuxer.read(media, timing);
      yield;
    } else if (demuxer.readFile !== undefined) {
      yield* demuxer.readFile(media.path, timing, media.within);
    } else {
      throw new ServiceError("upstream_invalid", `the segments of the ${name} stream are in different containers`);
    }
  }
  demuxer.flush();
}
