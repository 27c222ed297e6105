import type { StreamJournal } from "../../../files/stream-journal.ts";
import type { openMp4Writer } from "../../../remux/mp4/write/writer.ts";
import type { TrackKind } from "../../../remux/samples.ts";

/** What is sent of a file while it is being written. */
export interface StreamOutput {
  journal: StreamJournal;
  /** What the formats say that there is; `null`: they do not say all. */
  kinds: readonly TrackKind[] | null;
}

/** How long samples may wait in memory until readers can have them. */
const intervalMs = 250;

export interface PublisherOptions {
  journal: StreamJournal;
  writer: ReturnType<typeof openMp4Writer>;
  /** Of the file that is written, in the folder of the journal. */
  name: string;
  /** Whether there will be no further tracks than those so far. */
  hasAllTracks: () => boolean;
  hasKind: (kind: TrackKind) => boolean;
}

/** Creates what puts samples into a journal shortly after they were written, also while the next ones are waited for. */
export function createPublisher({ journal, writer, name, hasAllTracks, hasKind }: PublisherOptions) {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let failure: { error: unknown } | undefined;
  let lastMs = -Infinity;
  let isBroken = false;

  async function publish(isComplete: boolean): Promise<void> {
    if (isBroken) return;
    const fragments = await writer.publish(isComplete);
    isBroken = fragments === undefined;
    if (fragments === undefined) return journal.break();
    if (fragments.length === 0) return;
    lastMs = performance.now();
    const type = hasKind("video") ? { mime_type: "video/mp4", ext: "mp4" } : { mime_type: "audio/mp4", ext: "m4a" };
    if (!journal.isOpen) journal.open({ ...type, file: name }, false);
    for (const fragment of fragments) journal.add(fragment);
  }

  function start(): void {
    timer = undefined;
    running = publish(hasAllTracks())
      .catch((error: unknown) => void (failure ??= { error }))
      .finally(() => (running = undefined));
  }

  /** Nothing is published by itself any more. */
  async function close(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    await running;
  }

  return {
    /** To be called after samples were written. @throws the error of an earlier attempt */
    onSamples(): void {
      if (failure !== undefined) throw failure.error;
      if (running !== undefined || isBroken) return;
      timer ??= setTimeout(start, Math.max(0, lastMs + intervalMs - performance.now()));
    },
    /** Publishes what is left: the media are complete. */
    async finish(): Promise<void> {
      await close();
      if (failure !== undefined) throw failure.error;
      await publish(true);
    },
    close,
  };
}
