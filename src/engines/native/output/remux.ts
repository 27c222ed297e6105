import { setImmediate as nextTurn } from "node:timers/promises";
import { basename } from "node:path";
import { ServiceError } from "../../../model/errors.ts";
import type { Source } from "../sources/plan.ts";
import type { SourceStream } from "../sources/source-stream.ts";
import { DemuxSession, joinTimelines, leastAdvanced, summarize, type Written } from "./demux-session.ts";
import type { MediaPosition } from "../texts/place-cues.ts";
import type { Additions } from "../../../remux/additions.ts";
import { allAudio, type AudioChoice, firstAudio } from "../../../remux/audio-choice.ts";
import { Mp4Writer } from "../../../remux/mp4/write/writer.ts";
import type { TrackKind } from "../../../remux/samples.ts";
import { describeAudio, withDetails } from "../../../remux/track-details.ts";
import { Timelines } from "../../../remux/timelines.ts";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { fileType } from "../../../parsers/media-type.ts";

export interface RemuxOptions {
  streams: readonly [main: RemuxedStream, ...audio: RemuxedStream[]];
  /** Opens the audio to use if that of `main` turns out to have none; `null`: there is none. */
  openFallback: (() => Promise<RemuxedStream>) | null;
  audioOnly: boolean;
  /** Chooses among the audio tracks of `main`, or of the separate audio. */
  audioChoice: AudioChoice;
  /** Path of the MP4 file; the caller flushes it to the disk. */
  target: string;
  /** Called often with the bytes of media that the file has. */
  onWritten: (path: string, bytes: number) => void;
  /** Called often with how many seconds of media have been read of all streams; default: nothing is. */
  onReached?: ((seconds: number) => void) | undefined;
  /** Approximate duration, seconds; `null`: unknown. */
  expectedS: number | null;
  /** Limit of the file, bytes. */
  maxBytes: number;
  /** Returns what to add to the media, and before that how many bytes of it are likely. */
  additions: PendingAdditions;
  /** Gets what can be sent while the file is being written; default: nothing is. */
  stream?: StreamOutput | null;
  signal: AbortSignal;
}

export type RemuxedStream = SourceStream & Pick<Source, "role">;

/** Additions that are being fetched while the media are. */
export interface PendingAdditions {
  /** How many bytes they have, as far as that is known. */
  bytes(): number;
  /** How many of these are tags and chapters. */
  saidBytes(): number;
  /** How many tracks of subtitles are among them, as far as that is known. */
  textTracks(): number;
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
  const { audioOnly, target, onWritten, onReached, signal } = options;
  const { expectedS, maxBytes, additions, stream = null } = options;
  const onMove = (by: number | null) => stream?.journal.setShift(by);
  const writer = new Mp4Writer({ path: target, expectedS, maxBytes, additionBytes: () => additions.bytes(), onMove });
  const timelines = new Timelines();
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
      onReached?.(reachedOf(sessions));
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
    const originS = writer.end();
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

/** Returns how many seconds all sessions have read from where the last track begins; those that have ended do not count. */
function reachedOf(sessions: readonly DemuxSession[]): number {
  const startS = Math.max(...sessions.map(({ counts }) => counts.lastStartS));
  return Math.min(...sessions.filter(({ hasEnded }) => !hasEnded).map(({ counts }) => counts.reachedS)) - startS;
}

/** What is sent of a file while it is being written. */
interface StreamOutput {
  journal: StreamJournal;
  /** What the formats say that there is; `null`: they do not say all. */
  kinds: readonly TrackKind[] | null;
}

/** How often samples are published, and how long a request for them may wait. */
const intervalMs = 250;

interface PublisherOptions extends StreamOutput {
  writer: Mp4Writer;
  /** Of the file that is written; in the folder of the journal. */
  path: string;
  sessions: readonly DemuxSession[];
  /** Whether there will be no further ones. */
  hasAllSessions: () => boolean;
}

/**
 * Creates a writer that puts samples into a journal once a client has requested the stream: those that were written before, too, and later
 * ones shortly after they were written, also while the next ones are waited for. Until then the file is not touched.
 */
function createPublisher(options: PublisherOptions) {
  const { journal, writer, path, sessions } = options;
  let steps = 0;
  /** From this step on, chunks end with the segments. It must not depend on the run: later ones make the same fragments. */
  let cutFrom = journal.findRequest(0);
  let running: Promise<void> | undefined;
  let failure: { error: unknown } | undefined;
  let isBroken = false;
  const timer = setInterval(onTime, intervalMs);

  function onTime(): void {
    const isRequested = cutFrom !== undefined;
    cutFrom ??= journal.findRequest(steps);
    if (cutFrom === undefined || running !== undefined || isBroken || failure !== undefined) return;
    running = publish({ isComplete: hasAllTracks(options), isFirst: !isRequested })
      .catch((error: unknown) => void (failure ??= { error }))
      .finally(() => (running = undefined));
  }

  async function publish({ isComplete, isFirst = false }: { isComplete: boolean; isFirst?: boolean }): Promise<void> {
    if (isFirst) writer.cut();
    while (!isBroken) {
      const fragments = await writer.publish(isComplete);
      isBroken = fragments === undefined;
      if (fragments === undefined) return journal.break();
      if (fragments.length === 0) return;
      const type = fileType("mp4", hasKind(sessions, "video"));
      if (!journal.isOpen) journal.open({ ...type, file: basename(path) }, false);
      journal.add(fragments);
      // Long media are many fragments.
      await nextTurn();
    }
  }

  /** Nothing is published without a call. */
  async function close(): Promise<void> {
    clearInterval(timer);
    await running;
  }

  return {
    /** Call this after each step that may have written samples. @throws the error of an earlier attempt to publish */
    onStep(): void {
      if (failure !== undefined) throw failure.error;
      steps += 1;
      if (cutFrom !== undefined && steps >= cutFrom) writer.cut();
    },
    /** Publishes what is left, if there is a request: the media are complete. */
    async finish(): Promise<void> {
      await close();
      if (failure !== undefined) throw failure.error;
      if (cutFrom !== undefined) await publish({ isComplete: true });
    },
    close,
  };
}

/** Whether there will be no further tracks than those so far. */
function hasAllTracks({ kinds, sessions, hasAllSessions }: PublisherOptions): boolean {
  // If a format does not say which kinds it has, those of its first segment count.
  const isListed = kinds?.every((kind) => hasKind(sessions, kind)) !== false;
  return hasAllSessions() && isListed && sessions.every(({ hasTrack, hasEnded }) => hasTrack || hasEnded);
}

function hasKind(sessions: readonly DemuxSession[], kind: TrackKind): boolean {
  return sessions.some(({ counts }) => counts.has(kind));
}
