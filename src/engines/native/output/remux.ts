import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../../model/errors.ts";
import { checkAbsent, type SourceStream } from "../sources/source-stream.ts";
import { auditSink } from "./audit.ts";
import type { Evidence, WrittenTrack } from "./verdict.ts";
import { createMp4Demuxer } from "../../../remux/mp4/read/demuxer.ts";
import { openMp4Writer } from "../../../remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../../remux/mpeg-ts/demuxer.ts";
import { createPackedAudioDemuxer } from "../../../remux/packed-audio/demuxer.ts";
import type { Demuxer, DemuxerOptions, SampleSink, TrackKind } from "../../../remux/samples.ts";
import type { Container } from "../../../remux/sniff.ts";
import { createTimelines, type Timelines } from "../../../remux/timelines.ts";

export interface RemuxOptions {
  main: SourceStream;
  /** Separate audio. */
  audio: SourceStream | null;
  /** Opens the audio to use if `main` turns out to have none. */
  openAudio: (() => Promise<SourceStream>) | null;
  audioOnly: boolean;
  /** Path of the MP4 file; the caller flushes it to the disk. */
  target: string;
  /** Called often with the bytes of media that the file has by now. */
  onWritten: (path: string, bytes: number) => void;
  /** Approximate duration, seconds; `null`: unknown. */
  expectedS: number | null;
  /** Limit of the file, bytes. */
  maxBytes: number;
  signal: AbortSignal;
}

/** What was written. */
export type Written = Pick<Evidence, "tracks" | "drops">;

const demuxers = new Map<Container | null, (options: DemuxerOptions) => Demuxer>([
  ["mp4", createMp4Demuxer],
  ["mpeg-ts", createMpegTsDemuxer],
  ["packed-audio", createPackedAudioDemuxer],
]);

/** Whether `remux` can read its container. */
export function isRemuxable({ container }: SourceStream): boolean {
  return demuxers.has(container);
}

/**
 * Interleaves the samples of one or two streams into one MP4 file: always reads the stream that is less
 * advanced. Removes the file if it fails. Returns what was written of each track.
 *
 * @throws ServiceError of the demuxers, the writer and the streams; `format_unavailable` if only audio is
 * wanted and there is none.
 */
export async function remux(options: RemuxOptions): Promise<Written> {
  const { main, audio, openAudio, audioOnly, target, expectedS, maxBytes, onWritten, signal } =
    options;
  const writer = openMp4Writer({ path: target, expectedS, maxBytes });
  const timelines = createTimelines();
  const start = (stream: SourceStream, kinds: readonly TrackKind[]) =>
    startSession(stream, kinds, writer, timelines);
  const first = start(
    main,
    audioOnly ? ["audio"] : audio === null ? ["video", "audio"] : ["video"],
  );
  const sessions = [first];
  if (audio !== null) sessions.push(start(audio, ["audio"]));
  try {
    let openMissingAudio = audio === null ? openAudio : null;
    for (;;) {
      const session = leastAdvanced(sessions);
      if (session === undefined) break;
      await session.step();
      await writer.drain();
      onWritten(target, writer.size);
      signal.throwIfAborted();
      // Lets the event loop handle messages and sockets.
      await nextTurn();
      if (openMissingAudio !== null && first.timeS > 0) {
        if (!first.kinds.has("audio")) sessions.push(start(await openMissingAudio(), ["audio"]));
        openMissingAudio = null;
      }
    }
    if (audioOnly && !first.kinds.has("audio")) {
      throw new ServiceError("format_unavailable", "the downloaded media has no audio");
    }
    await writer.settle();
    writer.finish();
    const sum = (kind: TrackKind) => sessions.reduce((all, { drops }) => all + drops[kind], 0);
    const tracks = sessions.flatMap((session) => session.tracks());
    return { tracks, drops: { video: sum("video"), audio: sum("audio") } };
  } catch (error) {
    writer.discard();
    throw error;
  } finally {
    for (const { close } of sessions) await close();
  }
}

/** A stream being demuxed. */
interface DemuxSession {
  /** Decode time of its latest sample, seconds. */
  readonly timeS: number;
  readonly hasEnded: boolean;
  /** Kinds of the tracks found so far. */
  readonly kinds: ReadonlySet<TrackKind>;
  step(): Promise<void>;
  /** Returns what was written so far. */
  tracks(): WrittenTrack[];
  /** Places at which media were left out. */
  readonly drops: Readonly<Record<TrackKind, number>>;
  /** Stops reading and closes the stream. */
  close(): Promise<void>;
}

function leastAdvanced(sessions: readonly DemuxSession[]): DemuxSession | undefined {
  return sessions.filter(({ hasEnded }) => !hasEnded).toSorted((a, b) => a.timeS - b.timeS)[0];
}

function startSession(
  stream: SourceStream,
  wanted: readonly TrackKind[],
  writer: SampleSink,
  timelines: Timelines,
): DemuxSession {
  const audit = auditSink(writer);
  const kinds = new Set<TrackKind>();
  const timescales = new Map<number, number>();
  let timeS = 0;
  let hasEnded = false;
  const sink: SampleSink = {
    setFormat(format, track) {
      const number = audit.setFormat(format, track);
      kinds.add(format.kind);
      timescales.set(number, format.timescale);
      return number;
    },
    write(track, sample) {
      timeS = Math.max(timeS, sample.dts / (timescales.get(track) ?? 1));
      audit.write(track, sample);
    },
  };
  const options = { sink, timelines, kinds: wanted, onDrop: audit.onDrop };
  const steps = demux(stream, options, () => timeS);
  return {
    get timeS() {
      return timeS;
    },
    get hasEnded() {
      return hasEnded;
    },
    kinds,
    async step() {
      hasEnded = (await steps.next()).done === true;
    },
    drops: audit.drops,
    tracks: () => audit.tracks().map((track) => ({ ...track, source: stream.name })),
    async close() {
      await steps.return();
      await stream.chunks.return?.();
    },
  };
}

/** Reads one chunk, of a file a bounded part, at each step. */
async function* demux(
  { name, container, chunks }: SourceStream,
  options: DemuxerOptions,
  reachedS: () => number,
): AsyncGenerator<undefined, void, undefined> {
  const demuxer = demuxers.get(container)?.(options);
  if (demuxer === undefined) {
    throw new ServiceError("upstream_invalid", `the ${name} stream has no supported container`);
  }
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    if ("error" in next.value) {
      checkAbsent(next.value, reachedS());
      continue;
    }
    const { media, timing } = next.value;
    if (media instanceof Uint8Array) {
      demuxer.read(media, timing);
      yield;
    } else if (demuxer.readFile !== undefined) {
      yield* demuxer.readFile(media.path, timing);
    } else {
      const message = `the segments of the ${name} stream are in different containers`;
      throw new ServiceError("upstream_invalid", message);
    }
  }
  demuxer.flush();
}
