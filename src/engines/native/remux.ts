import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../errors.ts";
import type { SourceStream } from "./source-stream.ts";
import { createMp4Demuxer } from "../../remux/mp4/read/demuxer.ts";
import { openMp4Writer } from "../../remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../remux/mpeg-ts/demuxer.ts";
import { createPackedAudioDemuxer } from "../../remux/packed-audio/demuxer.ts";
import type { Demuxer, DemuxerOptions, SampleSink, TrackFormat } from "../../remux/samples.ts";
import type { Container } from "../../remux/sniff.ts";
import { createTimelines, type Timelines } from "../../remux/timelines.ts";

export interface RemuxOptions {
  main: SourceStream;
  /** Separate audio. */
  audio: SourceStream | null;
  /** Opens the audio to use if `main` turns out to have none. */
  openAudio: (() => Promise<SourceStream>) | null;
  audioOnly: boolean;
  /** Path of the MP4 file; the caller flushes it to the disk. */
  target: string;
  /** Approximate duration, seconds; `null`: unknown. */
  expectedS: number | null;
  /** Limit of the file, bytes. */
  maxBytes: number;
  signal: AbortSignal;
}

const containers: ReadonlySet<Container | null> = new Set(["mpeg-ts", "mp4", "packed-audio"]);

/** Whether `remux` can read its container. */
export function isRemuxable({ container }: SourceStream): boolean {
  return containers.has(container);
}

/**
 * Interleaves the samples of one or two streams into one MP4 file: always reads the stream that is less
 * advanced. Removes the file if it fails.
 *
 * @throws ServiceError of the demuxers, the writer and the streams; `format_unavailable` if only audio is
 * wanted and there is none.
 */
export async function remux(options: RemuxOptions): Promise<void> {
  const { main, audio, openAudio, audioOnly, target, expectedS, maxBytes, signal } = options;
  const writer = openMp4Writer({ path: target, expectedS, maxBytes });
  const timelines = createTimelines();
  const streams = [main, audio].filter((stream) => stream !== null);
  const sessions: DemuxSession[] = [];
  const start = (stream: SourceStream, kinds: readonly TrackFormat["kind"][]) =>
    startSession(stream, kinds, writer, timelines);
  try {
    const first = start(
      main,
      audioOnly ? ["audio"] : audio === null ? ["video", "audio"] : ["video"],
    );
    sessions.push(first);
    if (audio !== null) sessions.push(start(audio, ["audio"]));
    let mayNeedAudio = openAudio !== null && audio === null;
    for (;;) {
      const session = leastAdvanced(sessions);
      if (session === undefined) break;
      await session.step();
      signal.throwIfAborted();
      // Lets the event loop handle messages and sockets.
      await nextTurn();
      if (mayNeedAudio && openAudio !== null && first.timeS > 0) {
        mayNeedAudio = false;
        if (first.kinds.has("audio")) continue;
        const opened = await openAudio();
        streams.push(opened);
        sessions.push(start(opened, ["audio"]));
      }
    }
    if (audioOnly && !first.kinds.has("audio")) {
      throw new ServiceError("format_unavailable", "the downloaded media has no audio");
    }
    writer.finish();
  } catch (error) {
    writer.discard();
    throw error;
  } finally {
    // Closes the files that are read.
    for (const { close } of sessions) await close();
    for (const { chunks } of streams) await chunks.return?.();
  }
}

/** A stream being demuxed. */
interface DemuxSession {
  /** Decode time of its latest sample, seconds. */
  readonly timeS: number;
  readonly hasEnded: boolean;
  /** Kinds of the tracks found so far. */
  readonly kinds: ReadonlySet<TrackFormat["kind"]>;
  /** Reads one chunk, of a file a bounded part. */
  step(): Promise<void>;
  /** Stops reading; closes a file that is read. */
  close(): Promise<void>;
}

function leastAdvanced(sessions: readonly DemuxSession[]): DemuxSession | undefined {
  return sessions.filter(({ hasEnded }) => !hasEnded).toSorted((a, b) => a.timeS - b.timeS)[0];
}

function startSession(
  stream: SourceStream,
  wanted: readonly TrackFormat["kind"][],
  writer: SampleSink,
  timelines: Timelines,
): DemuxSession {
  const kinds = new Set<TrackFormat["kind"]>();
  const timescales = new Map<number, number>();
  let timeS = 0;
  let hasEnded = false;
  const sink: SampleSink = {
    setFormat(format, track) {
      const number = writer.setFormat(format, track);
      kinds.add(format.kind);
      timescales.set(number, format.timescale);
      return number;
    },
    write(track, sample) {
      timeS = Math.max(timeS, sample.dts / (timescales.get(track) ?? 1));
      writer.write(track, sample);
    },
  };
  const steps = demux(stream, createDemuxer(stream, { sink, timelines, kinds: wanted }));
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
    async close() {
      await steps.return();
    },
  };
}

async function* demux(
  { name, chunks }: SourceStream,
  demuxer: Demuxer,
): AsyncGenerator<undefined, void, undefined> {
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
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

function createDemuxer({ container, name }: SourceStream, options: DemuxerOptions): Demuxer {
  if (container === "mp4") return createMp4Demuxer(options);
  if (container === "mpeg-ts") return createMpegTsDemuxer(options);
  if (container === "packed-audio") return createPackedAudioDemuxer(options);
  throw new ServiceError("upstream_invalid", `the ${name} stream has no supported container`);
}
