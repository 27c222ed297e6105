import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../../model/errors.ts";
import type { Source } from "../sources/plan.ts";
import type { SourceStream } from "../sources/source-stream.ts";
import { DemuxSession, joinTimelines, leastAdvanced, summarize, type Written } from "./demux-session.ts";
import { createPublisher, type StreamOutput } from "./publish.ts";
import type { MediaPosition } from "../texts/place-cues.ts";
import type { Additions } from "../../../remux/additions.ts";
import { allAudio, type AudioChoice, firstAudio } from "../../../remux/audio-choice.ts";
import { openMp4Writer } from "../../../remux/mp4/write/writer.ts";
import type { TrackKind } from "../../../remux/samples.ts";
import { describeAudio, withDetails } from "../../../remux/track-details.ts";
import { createTimelines } from "../../../remux/timelines.ts";

export interface RemuxOptions {
  streams: readonly [main: RemuxedStream, ...audio: RemuxedStream[]];
  /** Opens the audio to use if that of `main` turns out to have none; `null`: there is none. */
  openFallback: (() => Promise<RemuxedStream>) | null;
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

type RemuxedStream = SourceStream & Pick<Source, "role">;

/** Additions that are being fetched while the media are. */
export interface PendingAdditions {
  /** How many bytes they have, as far as that is known. */
  bytes(): number;
  /** Resolves once all were fetched, or cannot be. @throws the signal's reason if the download is aborted. */
  ready(): Promise<void>;
  /** Returns them, once they are ready, with the times of a file whose media are there. @throws as `ready` */
  get(media: MediaPosition): Promise<Additions>;
}

/**
 * Interleaves the samples of one or two streams into one MP4 file: always reads the stream that is less
 * advanced. Removes the file if it fails. Returns what was written of each track.
 *
 * @throws ServiceError of the demuxers, the writer and the streams; `format_unavailable` if only audio is
 * wanted and there is none.
 */
export async function remux(options: RemuxOptions): Promise<Written> {
  const [main, ...audio] = options.streams;
  const { audioOnly, target, onWritten, signal } = options;
  const { expectedS, maxBytes, additions, stream = null } = options;
  const additionBytes = () => additions.bytes();
  const onMove = (by: number | null) => stream?.journal.setShift(by);
  const writer = openMp4Writer({ path: target, expectedS, maxBytes, additionBytes, onMove });
  const timelines = createTimelines();
  let place = 0;
  const hasAudio = audio.some(({ role }) => role === "audio");
  const start = (source: RemuxedStream) => {
    const { role, details, label } = source;
    const kinds: TrackKind[] = role !== "main" || audioOnly ? ["audio"] : hasAudio ? ["video"] : ["video", "audio"];
    const choice = role === "further" ? firstAudio : options.audioChoice;
    const sink = describeAudio(details === undefined ? writer : withDetails(writer, details), label, place++);
    // What was converted has been chosen.
    const isMerged = details !== undefined;
    return new DemuxSession(source, { sink, timelines, kinds, audio: isMerged ? allAudio : choice, isMerged });
  };
  const first = start(main);
  const sessions = [first, ...audio.map(start)];
  let openMissingAudio = options.openFallback;
  const publisher =
    stream &&
    createPublisher({ ...stream, writer, path: target, sessions, hasAllSessions: () => openMissingAudio === null });
  try {
    for (;;) {
      const session = leastAdvanced(sessions);
      if (session === undefined) break;
      joinTimelines(session, sessions, timelines);
      await session.step();
      publisher?.onStep();
      await writer.drain();
      onWritten(target, writer.size);
      signal.throwIfAborted();
      // Lets the event loop handle messages and sockets.
      await nextTurn();
      if (openMissingAudio !== null && first.counts.reachedS > 0) {
        if (!first.counts.has("audio")) sessions.push(start(await openMissingAudio()));
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
