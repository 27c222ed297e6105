import { Value } from "@sinclair/typebox/value";
import type { Engine } from "../engines/engine.ts";
import { ServiceError } from "../errors.ts";
import type { FileStore } from "../files/files.ts";
import { PageInfo } from "../page-info.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { Task, TaskFile } from "../task.ts";
import { nameInPath } from "../parsers/url.ts";
import { chooseFormat } from "./choose-format.ts";
import { fileName } from "./file-name.ts";
import type { TaskLease } from "./task-lease.ts";
import { Interruption } from "./interruption.ts";
import type { ProgressReport } from "./progress.ts";

/** What `produceFile` works with. */
export interface ProduceFileDeps {
  resolver: Resolver;
  engine: Engine;
  files: FileStore;
  /** Limit of the download and of the result, bytes. */
  maxFileBytes: number;
  /** Free disk space that a run needs to start, bytes. */
  minFreeBytes: number;
  /** How much of a live stream is recorded, seconds; 0: nothing. */
  maxLiveS: number;
}

/**
 * Resolves the task's page, chooses a format, downloads it and saves the result. Returns its description.
 * Updates the task's `info` and `progress` on the way.
 *
 * @throws ServiceError of the resolver, the engine, the file store and `chooseFormat`; `disk_full` if too
 * little space is free; `signal.reason` if aborted before the result is being saved.
 */
export async function produceFile(
  task: Task,
  deps: ProduceFileDeps,
  run: { taskLease: TaskLease; progress: ProgressReport; signal: AbortSignal },
): Promise<TaskFile> {
  const { engine, files, maxFileBytes, maxLiveS } = deps;
  const { taskLease, progress, signal } = run;
  signal.throwIfAborted();
  await assertFreeSpace(deps);
  // A dead worker's progress stays: `madeProgress` compares the bytes of this run with it.
  const { downloaded_bytes = null, total_bytes = null } = task.progress ?? {};
  const before = { downloaded_bytes, total_bytes, speed: null, eta: null };
  await taskLease.updateWithRetry({ progress: { stage: "resolving", ...before } });
  const info = await resolve(task, deps.resolver, signal);
  await taskLease.updateWithRetry({ info, progress: { stage: "downloading", ...before } });
  const chosen = chooseFormat(info, task.options);
  const folder = await files.openWorkFolder(task.id);
  signal.throwIfAborted();
  const job = { ...chosen, folder, maxBytes: maxFileBytes, maxLiveS };
  const download = await engine.download(job, { signal, onProgress: progress.report });
  // If the process was suspended for longer than the lease, another run may use these files.
  if (!(await taskLease.renew())) throw signal.reason ?? new Interruption("leaseExpired");
  signal.throwIfAborted();
  await files.saveResult(task.id, download.path);
  const { mime_type, size, sha256, duration, width, height } = download;
  const name = fileName(info.title ?? nameInPath(task.url), download.ext, task.id);
  const url = `/tasks/${task.id}/file`;
  return { name, mime_type, size, sha256, duration, width, height, url };
}

async function assertFreeSpace({ files, minFreeBytes }: ProduceFileDeps): Promise<void> {
  const freeBytes = await files.freeBytes();
  if (freeBytes >= minFreeBytes) return;
  throw new ServiceError(
    "disk_full",
    `not enough disk space: ${minFreeBytes} bytes must be free, ${freeBytes} are`,
  );
}

async function resolve(task: Task, resolver: Resolver, signal: AbortSignal): Promise<PageInfo> {
  const info: unknown = await resolver.resolve(new URL(task.url), { signal });
  signal.throwIfAborted();
  if (Value.Check(PageInfo, info)) return info;
  throw new ServiceError(
    "no_media",
    `there is no format to download: the resolver ${resolver.name} does not look for any`,
  );
}
