import type { DownloadProgress } from "../engines/engine.ts";
import type { Progress } from "../task.ts";

/** Least time between two of a task's changes of progress. */
const intervalMs = 500;

/** Whatever the reason, no task changes more often in a second. */
const maxPerSecond = 4;

/** Over how much time the speed is averaged. */
const smoothingMs = 3_000;

export interface ProgressReport {
  /** Cheap; the newest one counts. */
  report(progress: DownloadProgress): void;
  /** Bytes last reported. */
  readonly bytes: number | null;
  /** Ends the saving, the one under way included. */
  close(): Promise<void>;
}

/**
 * Saves what the engine reports at most every 500 ms, with speed and time left made of it. The first
 * report of another stage than `downloading` is saved at once, and so is the first with more bytes than
 * `bytesBefore`, those that earlier runs had reached: `gotFurther`. One is saved at a time; where `save`
 * rejects the next one makes up for it.
 */
export function createProgressReport(options: {
  bytesBefore: number;
  save: (progress: Progress, gotFurther: boolean) => Promise<void>;
  now: () => Date;
}): ProgressReport {
  const { bytesBefore, save, now } = options;
  const measure = createSpeedometer();
  let latest: DownloadProgress | undefined;
  let isFurther = false;
  // As if saved: that the download begins is put down by whoever begins it.
  let savedStage: Progress["stage"] = "downloading";
  let savedMs = now().getTime();
  // When the last ones were saved. A run puts down two of its own before its engine reports.
  const saves = [savedMs, savedMs];
  let timer: NodeJS.Timeout | undefined;
  let saving: Promise<void> | undefined;
  let isClosed = false;

  function schedule(): void {
    if (isClosed || saving !== undefined || latest === undefined) return;
    const isFirstFurther = !isFurther && (latest.downloaded_bytes ?? 0) > bytesBefore;
    const isUrgent = isFirstFurther || latest.stage !== savedStage;
    const dueMs = isUrgent ? 0 : savedMs + intervalMs;
    const allowedMs = (saves.at(-maxPerSecond) ?? 0) + 1_000;
    const waitMs = Math.max(dueMs, allowedMs) - now().getTime();
    if (waitMs > 0) {
      timer ??= setTimeout(
        () => {
          timer = undefined;
          savedMs = -Infinity;
          schedule();
        },
        Math.min(waitMs, 1_000),
      );
      return;
    }
    clearTimeout(timer);
    timer = undefined;
    const progress = measure(latest, now().getTime());
    latest = undefined;
    saving = write(progress, isFirstFurther);
  }

  async function write(progress: Progress, isFirstFurther: boolean): Promise<void> {
    savedMs = now().getTime();
    saves.push(savedMs);
    if (saves.length > maxPerSecond) saves.shift();
    savedStage = progress.stage;
    try {
      await save(progress, isFirstFurther);
      isFurther ||= isFirstFurther;
    } catch {
      // The task says nothing newer for half a second; what ends the run is said elsewhere.
    }
    saving = undefined;
    schedule();
  }

  let bytes: number | null = null;
  return {
    report(progress) {
      latest = { ...progress };
      bytes = progress.downloaded_bytes;
      schedule();
    },
    get bytes() {
      return bytes;
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await saving;
    },
  };
}

/** Adds speed and time left; what was there at the first report is not counted as fetched since. */
function createSpeedometer() {
  let last: { bytes: number; atMs: number } | undefined;
  let speed: number | null = null;
  return ({ stage, downloaded_bytes, total_bytes }: DownloadProgress, atMs: number): Progress => {
    const bytes = downloaded_bytes ?? 0;
    const passedMs = last === undefined ? 0 : atMs - last.atMs;
    if (last !== undefined && passedMs > 0) {
      const current = (Math.max(0, bytes - last.bytes) / passedMs) * 1000;
      const weight = speed === null ? 1 : 1 - Math.exp(-passedMs / smoothingMs);
      speed = (speed ?? 0) + weight * (current - (speed ?? 0));
    }
    if (last === undefined || passedMs > 0) last = { bytes, atMs };
    const left = total_bytes === null ? null : Math.max(0, total_bytes - bytes);
    return {
      stage,
      downloaded_bytes,
      total_bytes,
      speed: speed === null ? null : Math.round(speed),
      eta: left === null || !speed ? null : Math.ceil(left / speed),
    };
  };
}
