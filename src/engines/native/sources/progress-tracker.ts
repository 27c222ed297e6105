import type { DownloadContext } from "../../engine.ts";
import { isLiveSource, sourceDuration, type Plan, type Source, type SourceName } from "./plan.ts";

/** Reports the progress of a download. */
export class ProgressTracker {
  readonly #stored: { readonly bytes: number };
  readonly #onProgress: DownloadContext["onProgress"];
  readonly #sizes: ReadonlyMap<SourceName, SourceSize>;
  readonly #live: { is_live?: true };
  #stage: "downloading" | "processing" = "downloading";

  /** `stored.bytes`: those of all parts on the disk now. */
  constructor(
    { sources }: Pick<Plan, "sources">,
    stored: { readonly bytes: number },
    onProgress: DownloadContext["onProgress"],
  ) {
    this.#sizes = new Map(sources.map((source) => [source.name, createSourceSize(source)]));
    this.#live = sources.some(isLiveSource) ? { is_live: true } : {};
    this.#stored = stored;
    this.#onProgress = onProgress;
  }

  /** Reports the bytes on the disk. */
  update(): void {
    const stage = this.#stage;
    const downloaded_bytes = this.#stored.bytes;
    const expected = stage === "processing" ? downloaded_bytes : this.#sizes.values().reduce(sum, 0);
    const total_bytes = expected === null ? null : Math.max(expected, downloaded_bytes);
    this.#onProgress({ stage, downloaded_bytes, total_bytes, ...this.#live });
  }

  /** Sets the size of a source that is one file; `null`: unknown. */
  setTotal(name: SourceName, bytes: number | null): void {
    const size = this.#sizes.get(name);
    if (size?.isFile === true) size.expected = bytes;
    this.update();
  }

  /** Counts a fetched segment, from which the total is extrapolated. */
  addSegment(name: SourceName, seconds: number, bytes: number): void {
    const size = this.#sizes.get(name);
    if (size === undefined || size.durationS === null) return;
    size.seconds += seconds;
    size.bytes += bytes;
    if (size.seconds > 0) size.expected = Math.round((size.bytes * size.durationS) / size.seconds);
  }

  /** Everything has been fetched: the next stage is `processing`. */
  startProcessing(): void {
    this.#stage = "processing";
    this.update();
  }
}

interface SourceSize {
  isFile: boolean;
  /** Of all segments; `null`: unknown, or one file. */
  durationS: number | null;
  /** Of the fetched segments. */
  seconds: number;
  bytes: number;
  /** Total bytes, from the server or extrapolated; `null`: unknown. */
  expected: number | null;
}

function createSourceSize(source: Source): SourceSize {
  const isFile = source.kind === "file";
  return { isFile, durationS: sourceDuration(source), seconds: 0, bytes: 0, expected: null };
}

function sum(total: number | null, { expected }: SourceSize): number | null {
  return total === null || expected === null ? null : total + expected;
}
