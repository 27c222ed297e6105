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
  /** Has the sound, if it is not in `main`. */
  audio: SourceStream | null;
  /** Where the sound is if `main` turns out to have none. */
  openAudio: (() => Promise<SourceStream>) | null;
  audioOnly: boolean;
  /** The MP4 file that is made, complete; flushing it to the disk is left to the caller. */
  target: string;
  /** About how long the presentation is, seconds; `null`: not known. */
  expectedS: number | null;
  /** Limit of the file, bytes. */
  maxBytes: number;
  signal: AbortSignal;
}

const containers: ReadonlySet<Container | null> = new Set(["mpeg-ts", "mp4", "packed-audio"]);

/** Whether `remux` knows its container. */
export function isRemuxable({ container }: SourceStream): boolean {
  return containers.has(container);
}

/**
 * Moves the samples of one or two lanes into one MP4 file, whichever of them is behind first.
 *
 * @throws ServiceError of the demuxers, the writer and the lanes. What was begun is removed.
 */
export async function remux(options: RemuxOptions): Promise<void> {
  const { main, audio, openAudio, audioOnly, target, expectedS, maxBytes, signal } = options;
  const writer = openMp4Writer({ path: target, expectedS, maxBytes });
  const timelines = createTimelines();
  const streams = [main, audio].filter((stream) => stream !== null);
  const runs: DemuxSession[] = [];
  const start = (stream: SourceStream, kinds: readonly TrackFormat["kind"][]) =>
    startRun(stream, kinds, writer, timelines);
  try {
    const pictures = start(
      main,
      audioOnly ? ["audio"] : audio === null ? ["video", "audio"] : ["video"],
    );
    runs.push(pictures);
    if (audio !== null) runs.push(start(audio, ["audio"]));
    let mayNeedAudio = openAudio !== null && audio === null;
    for (;;) {
      const run = leastAdvanced(runs);
      if (run === undefined) break;
      await run.step();
      signal.throwIfAborted();
      // Lets messages and sockets have their turn.
      await nextTurn();
      if (mayNeedAudio && openAudio !== null && pictures.timeS > 0) {
        mayNeedAudio = false;
        if (pictures.kinds.has("audio")) continue;
        const sound = await openAudio();
        streams.push(sound);
        runs.push(start(sound, ["audio"]));
      }
    }
    if (audioOnly && !pictures.kinds.has("audio")) {
      throw new ServiceError("format_unavailable", "what was received has no sound");
    }
    writer.finish();
  } catch (error) {
    writer.discard();
    throw error;
  } finally {
    // Closes the files that they are read from.
    for (const { close } of runs) await close();
    for (const { chunks } of streams) await chunks.return?.();
  }
}

/** A lane on its way through its demuxer. */
interface DemuxSession {
  /** How far its samples have come, seconds. */
  readonly timeS: number;
  readonly isOver: boolean;
  /** What tracks it has shown so far. */
  readonly kinds: ReadonlySet<TrackFormat["kind"]>;
  /** Reads one chunk, of a file a bounded part. */
  step(): Promise<void>;
  /** Stops reading; closes a file that is read. */
  close(): Promise<void>;
}

function leastAdvanced(runs: readonly DemuxSession[]): DemuxSession | undefined {
  return runs.filter(({ isOver }) => !isOver).toSorted((a, b) => a.timeS - b.timeS)[0];
}

function startRun(
  stream: SourceStream,
  wanted: readonly TrackFormat["kind"][],
  writer: SampleSink,
  timelines: Timelines,
): DemuxSession {
  const kinds = new Set<TrackFormat["kind"]>();
  const timescales = new Map<number, number>();
  let timeS = 0;
  let isOver = false;
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
    get isOver() {
      return isOver;
    },
    kinds,
    async step() {
      isOver = (await steps.next()).done === true;
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
    const { media, place } = next.value;
    if (media instanceof Uint8Array) {
      demuxer.read(media, place);
      yield;
    } else if (demuxer.readFile !== undefined) {
      yield* demuxer.readFile(media.path, place);
    } else {
      const message = `the segments of the ${name} medium are in different containers`;
      throw new ServiceError("upstream_invalid", message);
    }
  }
  demuxer.flush();
}

function createDemuxer({ container, name }: SourceStream, options: DemuxerOptions): Demuxer {
  if (container === "mp4") return createMp4Demuxer(options);
  if (container === "mpeg-ts") return createMpegTsDemuxer(options);
  if (container === "packed-audio") return createPackedAudioDemuxer(options);
  throw new ServiceError("upstream_invalid", `the ${name} medium is of no known kind`);
}
