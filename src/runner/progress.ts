import type { DownloadProgress } from "../engines/engine.ts";
import type { Progress, WaitReason } from "../model/progress.ts";

/** Shortest time between two saves. */
const intervalMs = 500;

/** Limit of saves for any reason. */
const maxPerSecond = 4;

/** Time constant of the speed's moving average. */
const smoothingMs = 3_000;

/** Shortest time that gives a speed: what a server sends first comes in one burst. */
const minMeasuredMs = 250;

export type ProgressReport = ReturnType<typeof createProgressReport>;

/**
 * Saves the engine's reports at most every 500 ms, with speed and time left. The first report of a stage
 * other than `downloading` is saved at once, and so is the first with more than `bytesBefore`, the bytes of
 * earlier runs: its save has `madeProgress`. Saves follow one another; if one rejects, the next report is
 * saved instead.
 */
export function createProgressReport({ before, save, onBytes }: ProgressReportOptions) {
  const { downloaded_bytes: bytesBefore = null, total_bytes = null } = before ?? {};
  const saver = createSaver(bytesBefore ?? 0, save);
  let bytes: number | null = null;
  let last: DownloadProgress | undefined;
  let reason: WaitReason | null = null;
  const offer = (progress: DownloadProgress) => saver.offer({ ...progress, ...(reason && { waiting_for: reason }) });
  return {
    /** Cheap; a later report replaces one that is not saved yet. */
    report(progress: DownloadProgress): void {
      const { downloaded_bytes } = progress;
      const added = bytes === null ? 0 : (downloaded_bytes ?? 0) - bytes;
      if (added > 0) onBytes?.(added);
      bytes = downloaded_bytes;
      last = progress;
      offer(progress);
    },
    /** Saves, now and with later reports, what the download waits for; `null`: nothing more than they say. */
    waitFor(next: WaitReason | null): void {
      reason = next;
      offer(last ?? { stage: "downloading", downloaded_bytes: bytesBefore, total_bytes });
    },
    /** Bytes of the last report. */
    get bytes(): number | null {
      return bytes;
    },
    /** Whether the run has added bytes to those of earlier runs. */
    get hasProgressed(): boolean {
      return (bytes ?? 0) > (bytesBefore ?? 0);
    },
    close: saver.close,
  };
}

interface ProgressReportOptions {
  /** What earlier runs have saved. */
  before: Pick<Progress, "downloaded_bytes" | "total_bytes"> | null;
  save: (progress: Progress, madeProgress: boolean) => Promise<void>;
  /** Called with the bytes that have come since the report before; those of the first one are of earlier runs. */
  onBytes?: ((bytes: number) => void) | undefined;
}

/** Saves what it is offered, the latest each time, at the pace that `createProgressReport` promises. */
function createSaver(bytesBefore: number, save: ProgressReportOptions["save"]) {
  const measure = createSpeedometer();
  const pacer = createPacer();
  let latest: DownloadProgress | undefined;
  let hasProgressed = false;
  // The run has saved that the download begins.
  let savedStage: Progress["stage"] = "downloading";
  let timer: NodeJS.Timeout | undefined;
  let saving: Promise<void> | undefined;
  let isClosed = false;

  function schedule(): void {
    if (isClosed || saving !== undefined || latest === undefined) return;
    const isFirstProgress = !hasProgressed && (latest.downloaded_bytes ?? 0) > bytesBefore;
    const waitMs = pacer.waitMs(isFirstProgress || latest.stage !== savedStage);
    if (waitMs > 0) {
      timer ??= setTimeout(wake, Math.min(waitMs, 1_000));
      return;
    }
    clearTimeout(timer);
    timer = undefined;
    const progress = measure(latest, performance.now());
    latest = undefined;
    saving = write(progress, isFirstProgress);
  }

  function wake(): void {
    timer = undefined;
    pacer.endInterval();
    schedule();
  }

  async function write(progress: Progress, isFirstProgress: boolean): Promise<void> {
    pacer.onSave();
    savedStage = progress.stage;
    try {
      await save(progress, isFirstProgress);
      hasProgressed ||= isFirstProgress;
    } catch {
      // The next report is saved; the lease ends the run if the store stays unavailable.
    }
    saving = undefined;
    schedule();
  }

  return {
    offer(progress: DownloadProgress): void {
      latest = progress;
      schedule();
    },
    /** Waits for the save in progress; nothing is saved afterwards. */
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      await saving;
    },
  };
}

/** Says when the next save is due. */
function createPacer() {
  let savedMs = performance.now();
  // Times of the last saves. The run makes two of its own before the engine reports.
  const saves = [savedMs, savedMs];
  return {
    /** How long an urgent save waits, or another one; 0 or less: not at all. */
    waitMs(isUrgent: boolean): number {
      const dueMs = isUrgent ? -Infinity : savedMs + intervalMs;
      const allowedMs = (saves.at(-maxPerSecond) ?? -Infinity) + 1_000;
      return Math.max(dueMs, allowedMs) - performance.now();
    },
    /** Makes the next save due now, within `maxPerSecond`. */
    endInterval(): void {
      savedMs = -Infinity;
    },
    onSave(): void {
      savedMs = performance.now();
      saves.push(savedMs);
      if (saves.length > maxPerSecond) saves.shift();
    },
  };
}

/** Adds speed and time left; the bytes of the first report do not count as downloaded. */
function createSpeedometer() {
  let last: { bytes: number; atMs: number } | undefined;
  // Of the time since the first report; the older, the less of it counts.
  let receivedBytes = 0;
  let measuredMs = 0;
  return ({ stage, downloaded_bytes, total_bytes, is_live, waiting_for }: DownloadProgress, atMs: number): Progress => {
    const bytes = downloaded_bytes ?? 0;
    const passedMs = last === undefined ? 0 : atMs - last.atMs;
    if (last !== undefined && passedMs > 0) {
      const kept = Math.exp(-passedMs / smoothingMs);
      receivedBytes = receivedBytes * kept + Math.max(0, bytes - last.bytes);
      measuredMs = measuredMs * kept + passedMs;
    }
    if (last === undefined || passedMs > 0) last = { bytes, atMs };
    const isPaused = waiting_for === "host";
    const speed = isPaused || measuredMs < minMeasuredMs ? null : Math.round((receivedBytes / measuredMs) * 1000);
    const left = total_bytes === null ? null : Math.max(0, total_bytes - bytes);
    return {
      stage,
      downloaded_bytes,
      total_bytes,
      speed,
      eta: left === null || !speed ? null : Math.ceil(left / speed),
      ...(is_live !== undefined && { is_live }),
      ...(waiting_for !== undefined && { waiting_for }),
    };
  };
}
