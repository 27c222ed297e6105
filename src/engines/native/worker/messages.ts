import type { SerializedError } from "../../../model/serialized-error.ts";
import type { Download, DownloadJob, DownloadProgress } from "../../engine.ts";
import type { FileWork } from "../output/assemble-media.ts";

/** Sent to the worker; one download at a time. */
export type WorkerRequest = { type: "download"; job: DownloadJob } | { type: "finish" } | { type: "abort" };

/**
 * Sent by the worker; `done` or `failed` ends a download. `alive`: its event loop turns. `work`: it begins
 * work on complete files, or has ended it (`null`). `blocked`: its guard has blocked an address.
 */
export type WorkerMessage =
  | { type: "alive" }
  | { type: "work"; work: FileWork | null }
  | { type: "blocked"; reason: string }
  | { type: "progress"; progress: DownloadProgress }
  | { type: "done"; download: Download }
  | { type: "failed"; failure: SerializedError };
