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

/** What makes a file of a task. */
export interface ProduceFileDeps {
  resolver: Resolver;
  engine: Engine;
  files: FileStore;
  /** Limit of what is fetched and of the result, bytes. */
  maxFileBytes: number;
  /** A run begins only while so many bytes are free. */
  minFreeBytes: number;
  /** How much of a live stream is recorded, seconds; 0: none. */
  maxLiveS: number;
}

/**
 * Resolves the task's page, chooses a format, downloads it and keeps the result, which it describes. What
 * it knows by then is put down in the task, `info` above all.
 *
 * @throws ServiceError of the parts and of `chooseFormat`; `disk_full` where too little room is free;
 * `signal.reason` when it is aborted, but not once the result is being kept.
 */
export async function produceFile(
  task: Task,
  workshop: ProduceFileDeps,
  run: { taskLease: TaskLease; progress: ProgressReport; signal: AbortSignal },
): Promise<TaskFile> {
  const { engine, files, maxFileBytes, maxLiveS } = workshop;
  const { taskLease, progress, signal } = run;
  signal.throwIfAborted();
  await assertFreeSpace(workshop);
  // A dead worker's bytes stay in sight: those of this run are measured against them.
  const { downloaded_bytes = null, total_bytes = null } = task.progress ?? {};
  const unmoved = { downloaded_bytes, total_bytes, speed: null, eta: null };
  await taskLease.updateWithRetry({ progress: { stage: "resolving", ...unmoved } });
  const info = await resolve(task, workshop.resolver, signal);
  await taskLease.updateWithRetry({ info, progress: { stage: "downloading", ...unmoved } });
  const choice = chooseFormat(info, task.options);
  const folder = await files.openWorkFolder(task.id);
  signal.throwIfAborted();
  const job = { ...choice, folder, maxBytes: maxFileBytes, maxLiveS };
  const download = await engine.download(job, { signal, onProgress: progress.report });
  // One that stood still for longer than its lease would take another run's parts away.
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
