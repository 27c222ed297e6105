import type { SerializedError } from "../../../model/errors.ts";
import type { HostPause } from "../../../model/url-parts.ts";
import type { Download, DownloadJob, DownloadProgress } from "../../engine.ts";
import type { FileWork } from "../output/assemble-streams.ts";

/**
 * Sent to the worker; one download at a time. `granted` answers `take`: so many bytes may be received. `pause`: a host is to be
 * left alone.
 */
export type WorkerRequest =
  | { type: "download"; job: DownloadJob }
  | { type: "finish" }
  | { type: "abort" }
  | { type: "granted"; id: number; bytes: number }
  | { type: "pause"; pause: HostPause };

/**
 * Sent by the worker; `done` or `failed` ends a download. `alive`: its event loop turns. `work`: it begins
 * work on complete files, or has ended it (`null`). `blocked`: its guard has blocked an address. `take`: it asks how much of
 * so many bytes of media it may receive. `pause`: a host has asked to be left alone. `waiting`: it waits for such a host, or no longer.
 */
export type WorkerMessage =
  | { type: "alive" }
  | { type: "work"; work: FileWork | null }
  | { type: "blocked"; reason: string }
  | { type: "take"; id: number; host: string; bytes: number }
  | { type: "pause"; pause: HostPause }
  | { type: "waiting"; isWaiting: boolean }
  | { type: "progress"; progress: DownloadProgress }
  | { type: "done"; download: Download }
  | { type: "failed"; failure: SerializedError };
