import type { Format } from "../page-info.ts";
import type { Progress } from "../task.ts";

/**
 * Contract of an engine: it turns a format into one playable file. It can be implemented from this
 * text alone; the suite in `test/contracts/engine.ts` holds every implementation to it.
 *
 * - **One file.** The medium as it was published, without re-encoding: a progressive file as it is, of
 *   several pieces or tracks one MP4 with its index in front, or one WebM.
 * - **Whole or not at all.** What `download` gives is complete, has been read back, and has been
 *   flushed to the disk (fsync).
 * - **Resume.** Everything that was fetched stays in `job.folder`. A later `download` of the same
 *   format in the same folder goes on from there, also after the process was killed; where what is
 *   there does not belong to what the server has now, it starts anew and never splices.
 * - **The guard.** Every byte comes through the guarded client: manifests, keys, segments, redirects.
 * - **Errors.** `ServiceError`: the client's (`address_blocked`, `upstream_*`), `format_unavailable`
 *   (the manifest no longer lists it, or nothing can be made of it), `drm_protected`, `live_stream`
 *   (it has no end that could be waited for), `too_large` (more than `job.maxBytes`), `disk_full`,
 *   `internal` (the work itself crashed or ran out of memory; never `retryable`). `retryable` says
 *   whether a later run may succeed.
 * - **Abort.** When `signal` is aborted the transfer stops within a second and the promise rejects
 *   with `signal.reason`. Nothing is touched in `job.folder` after the promise has settled.
 */
export interface Engine {
  /** Registry key, for logs. */
  readonly name: string;
  /** Downloads are independent and may run concurrently, each in a folder of its own. */
  download(job: DownloadJob, context: DownloadContext): Promise<Download>;
  /** Ends what still runs and frees everything; safe to call twice. */
  close(): Promise<void>;
}

export interface DownloadJob {
  format: Format;
  /**
   * Where the sound is, if it is not in `format`: for certain where `format.acodec` is `"none"`; where
   * that is `null` it is only taken if `format` turns out to have none.
   */
  audio: Format | null;
  /** Leave the pictures out of the result. */
  audioOnly: boolean;
  /** Exists; belongs to this download alone, across runs. */
  folder: string;
  /** Limit of what is fetched and of the result, bytes. */
  maxBytes: number;
  /** How much of a live stream is recorded, seconds; then the file ends. 0: none. */
  maxLiveS: number;
}

export interface DownloadContext {
  signal: AbortSignal;
  /** Called often and cheaply; `stage` is `downloading` or `processing`. */
  onProgress(progress: DownloadProgress): void;
}

/** Bytes on the disk, those of earlier runs included. */
export type DownloadProgress = Pick<Progress, "stage" | "downloaded_bytes" | "total_bytes">;

export interface Download {
  /** In `job.folder` or a folder of it. */
  path: string;
  /** Without the dot: `mp4`, `webm`, `m4a` … */
  ext: string;
  mime_type: string;
  /** Bytes. */
  size: number;
  /** Hexadecimal. */
  sha256: string;
  /** Seconds; `null` where the file does not tell. */
  duration: number | null;
  /** Pixels as shown; `null` without pictures. */
  width: number | null;
  height: number | null;
}
