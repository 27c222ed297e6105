import { basename } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import type { openMp4Writer } from "../../../remux/mp4/write/writer.ts";
import { mediaType } from "../inspect/media-types.ts";
import type { TrackKind } from "../../../remux/samples.ts";

/** What is sent of a file while it is being written. */
export interface StreamOutput {
  journal: StreamJournal;
  /** What the formats say that there is; `null`: they do not say all. */
  kinds: readonly TrackKind[] | null;
}

/** How often samples are published, and how long a request for them may wait. */
const intervalMs = 250;

/** A source of samples. */
interface Session {
  counts: { has(kind: TrackKind): boolean };
  hasTrack: boolean;
  hasEnded: boolean;
}

interface PublisherOptions extends StreamOutput {
  writer: ReturnType<typeof openMp4Writer>;
  /** Of the file that is written; in the folder of the journal. */
  path: string;
  sessions: readonly Session[];
  /** Whether there will be no further ones. */
  hasAllSessions: () => boolean;
}

/**
 * Creates a writer that puts samples into a journal once somebody has requested the stream: those that were written before, too, and later
 * ones shortly after they were written, also while the next ones are waited for. Until then the file is not touched.
 */
export function createPublisher(options: PublisherOptions) {
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
      const type = mediaType("mp4", hasKind(sessions, "video"));
      if (!journal.isOpen) journal.open({ ...type, file: basename(path) }, false);
      journal.add(fragments);
      // Long media are many fragments.
      await nextTurn();
    }
  }

  /** Nothing is published by itself any more. */
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

function hasKind(sessions: readonly Session[], kind: TrackKind): boolean {
  return sessions.some(({ counts }) => counts.has(kind));
}
