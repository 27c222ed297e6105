import type { DownloadContext } from "../../engine.ts";
import { sourceDuration, type Plan, type Source, type SourceName } from "./plan.ts";

/** Reports the progress of a download. */
export interface ProgressTracker {
  /** Reports the bytes on the disk. */
  update(): void;
  /** States the size of a source that is one file; `null`: unknown. */
  setTotal(name: SourceName, bytes: number | null): void;
  /** Counts a fetched segment, from which the total is extrapolated. */
  addSegment(name: SourceName, seconds: number, bytes: number): void;
  /** Everything has been fetched: the next stage is `processing`. */
  startProcessing(): void;
}

/** `stored.bytes`: all bytes on the disk now. */
export function createProgressTracker(
  plan: Plan,
  stored: { readonly bytes: number },
  onProgress: DownloadContext["onProgress"],
): ProgressTracker {
  const sources = [plan.main, plan.audio].filter((source) => source !== null);
  const sizes = new Map(sources.map((source) => [source.name, createSourceSize(source)]));
  const isLive = sources.some(
    (source) => source.kind === "segments" && source.liveJournalPath !== null,
  );
  const live = isLive ? { is_live: true } : {};
  let stage: "downloading" | "processing" = "downloading";

  function update(): void {
    const downloaded_bytes = stored.bytes;
    const expected = stage === "processing" ? downloaded_bytes : sizes.values().reduce(sum, 0);
    const total_bytes = expected === null ? null : Math.max(expected, downloaded_bytes);
    onProgress({ stage, downloaded_bytes, total_bytes, ...live });
  }

  return {
    update,
    setTotal(name, bytes) {
      const size = sizes.get(name);
      if (size?.isFile === true) size.expected = bytes;
      update();
    },
    addSegment(name, seconds, bytes) {
      const size = sizes.get(name);
      if (size === undefined || size.durationS === null) return;
      size.seconds += seconds;
      size.bytes += bytes;
      if (size.seconds > 0) {
        size.expected = Math.round((size.bytes * size.durationS) / size.seconds);
      }
    },
    startProcessing() {
      stage = "processing";
      update();
    },
  };
}

interface SourceSize {
  isFile: boolean;
  /** Of all segments; `null`: unknown, or one file. */
  durationS: number | null;
  /** Of the fetched segments. */
  seconds: number;
  bytes: number;
  /** Total bytes, stated or extrapolated; `null`: unknown. */
  expected: number | null;
}

function createSourceSize(source: Source): SourceSize {
  const isFile = source.kind === "file";
  return { isFile, durationS: sourceDuration(source), seconds: 0, bytes: 0, expected: null };
}

function sum(total: number | null, { expected }: SourceSize): number | null {
  return total === null || expected === null ? null : total + expected;
}
