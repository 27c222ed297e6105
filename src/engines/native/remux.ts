import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../errors.ts";
import type { Chunk, Lane } from "./lane.ts";
import { createFmp4Demuxer } from "./remux/mp4/fmp4.ts";
import { openMp4Writer } from "./remux/mp4/mp4-writer.ts";
import { createMpegTsDemuxer } from "./remux/mpeg-ts/mpeg-ts.ts";
import { createPackedAudioDemuxer } from "./remux/mpeg-ts/packed-audio.ts";
import type { Demuxer, SampleSink, TrackFormat } from "./remux/samples.ts";
import type { Container } from "./remux/sniff.ts";
import { createTimelines, type Timelines } from "./remux/timelines.ts";

export interface RemuxOptions {
  main: Lane;
  /** Has the sound, if it is not in `main`. */
  audio: Lane | null;
  /** Where the sound is if `main` turns out to have none. */
  openAudio: (() => Promise<Lane>) | null;
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
export function isRemuxable({ container }: Lane): boolean {
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
  const lanes = [main, audio].filter((lane) => lane !== null);
  const start = (lane: Lane, kinds: readonly TrackFormat["kind"][]) =>
    startRun(lane, kinds, writer, timelines);
  try {
    const pictures = start(
      main,
      audioOnly ? ["audio"] : audio === null ? ["video", "audio"] : ["video"],
    );
    const runs = audio === null ? [pictures] : [pictures, start(audio, ["audio"])];
    let mayNeedAudio = openAudio !== null && audio === null;
    for (;;) {
      const run = behind(runs);
      if (run === undefined) break;
      await run.step();
      signal.throwIfAborted();
      // Lets messages and sockets have their turn.
      await nextTurn();
      if (mayNeedAudio && openAudio !== null && pictures.timeS > 0) {
        mayNeedAudio = false;
        if (pictures.kinds.has("audio")) continue;
        const sound = await openAudio();
        lanes.push(sound);
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
    for (const { chunks } of lanes) await chunks.return?.();
  }
}

/** A lane on its way through its demuxer. */
interface Run {
  /** How far its samples have come, seconds. */
  readonly timeS: number;
  readonly isOver: boolean;
  /** What tracks it has shown so far. */
  readonly kinds: ReadonlySet<TrackFormat["kind"]>;
  step(): Promise<void>;
}

function behind(runs: readonly Run[]): Run | undefined {
  return runs.filter(({ isOver }) => !isOver).toSorted((a, b) => a.timeS - b.timeS)[0];
}

function startRun(
  lane: Lane,
  wanted: readonly TrackFormat["kind"][],
  writer: SampleSink,
  timelines: Timelines,
): Run {
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
  const demuxer = createDemuxer(lane, { sink, timelines, kinds: wanted });
  return {
    get timeS() {
      return timeS;
    },
    get isOver() {
      return isOver;
    },
    kinds,
    async step() {
      const next: IteratorResult<Chunk> = await lane.chunks.next();
      isOver = next.done === true;
      if (next.done === true) demuxer.flush();
      else demuxer.read(next.value.bytes, next.value.place);
    },
  };
}

interface DemuxerParts {
  sink: SampleSink;
  timelines: Timelines;
  kinds: readonly TrackFormat["kind"][];
}

function createDemuxer({ container, name }: Lane, parts: DemuxerParts): Demuxer {
  if (container === "mp4") return createFmp4Demuxer(parts);
  if (container === "mpeg-ts") return createMpegTsDemuxer(parts);
  if (container === "packed-audio") return createPackedAudioDemuxer(parts);
  throw new ServiceError("upstream_invalid", `the ${name} medium is of no known kind`);
}
