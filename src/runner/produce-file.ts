import type { Engine } from "../engines/engine.ts";
import { ServiceError } from "../model/errors.ts";
import type { FileStore } from "../files/files.ts";
import { pageUrlOf } from "../model/page-info.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { Task, TaskFile, TaskOptions } from "../model/task.ts";
import { nameInPath } from "../parsers/url.ts";
import { chooseFormat, type FormatChoice } from "./choose-format.ts";
import { downloadTarget } from "./download-target.ts";
import { fileName } from "./file-name.ts";
import { findAgain } from "./find-again.ts";
import type { TaskLease } from "./task-lease.ts";
import { Interruption } from "./interruption.ts";
import { checkMaxHeight } from "./max-height.ts";
import type { ProgressReport } from "./progress.ts";
import type { StorageLimit } from "./storage-limit.ts";
import { checkStatedDuration } from "./stated-duration.ts";
import { publicInfo, type ResolvedPage, resolvePage } from "./resolve-page.ts";

/** What `produceFile` works with. */
export interface ProduceFileDeps {
  resolver: Resolver;
  engine: Engine;
  files: FileStore;
  /** Limit of the download and of the result, bytes. */
  maxFileBytes: number;
  /** What the files of all tasks may have together; one file may not have more. */
  storage: StorageLimit;
  /** Free disk space that a run needs to start, bytes. */
  minFreeBytes: number;
  /** How much of a live stream is recorded, seconds; 0: nothing. */
  maxLiveS: number;
}

/**
 * Resolves the task's page, chooses a format, downloads it and saves the result. Returns its description.
 * Updates the task's `info` and `progress` on the way. A later run of the task and a page that is resolved
 * again because its URLs have expired find the same format, if it is still there.
 *
 * @throws ServiceError of the resolver, the engine, the file store and `chooseFormat`; `quota_exceeded` if the
 * download is larger than `run.bytesLeft`; `disk_full` if too little space is free; `signal.reason` if aborted
 * before the result is being saved.
 */
export async function produceFile(
  task: Task,
  deps: ProduceFileDeps,
  run: {
    taskLease: TaskLease;
    progress: ProgressReport;
    signal: AbortSignal;
    /** Aborted when a recording is to end. */
    finish: AbortSignal;
    /** What the key of the task's owner leaves at the start, bytes; undefined: any number. */
    bytesLeft: number | undefined;
  },
): Promise<TaskFile> {
  const { engine, files, maxLiveS } = deps;
  const { taskLease, progress, signal, finish, bytesLeft } = run;
  const limit = fileLimit(deps, bytesLeft);
  signal.throwIfAborted();
  await assertFreeSpace(deps);
  // A dead worker's progress stays: `madeProgress` compares the bytes of this run with it.
  const { downloaded_bytes = null, total_bytes = null, is_live } = task.progress ?? {};
  const sizes = { downloaded_bytes, total_bytes, speed: null, eta: null };
  const before = { ...sizes, ...(is_live !== undefined && { is_live }) };
  await taskLease.updateWithRetry({ progress: { stage: "resolving", ...before } });
  const page = await resolvePage(task, deps.resolver, signal);
  const info = publicInfo(page);
  await taskLease.updateWithRetry({ info, progress: { stage: "downloading", ...before } });
  const first = { page, choice: choose(page, task.options, earlierChoice(task)) };
  const folder = await files.openWorkFolder(task.id);
  signal.throwIfAborted();
  const { target, download } = await downloadTarget(first, {
    async download(current) {
      const limits = { maxBytes: limit.bytes, maxLiveS };
      const job = { ...current.choice, pageUrl: pageUrlOf(current.page), folder, ...limits };
      try {
        return await engine.download(job, { signal, finish, onProgress: progress.report });
      } catch (error) {
        throw withLimit(error, limit);
      }
    },
    async refresh({ choice }) {
      const again = await resolvePage(task, deps.resolver, signal);
      await taskLease.updateWithRetry({ info: publicInfo(again) });
      return { page: again, choice: choose(again, task.options, choice) };
    },
    get bytes() {
      return progress.bytes ?? 0;
    },
  });
  // If the process was suspended for longer than the lease, another run may use these files.
  if (!(await taskLease.renew())) throw signal.reason ?? new Interruption("leaseExpired");
  signal.throwIfAborted();
  await files.saveResult(task.id, download.path);
  const { mime_type, size, sha256, duration, width, height } = download;
  const warnings = [
    ...checkStatedDuration(target.page, download),
    ...checkMaxHeight(task.options, height),
  ];
  const name = fileName(target.page.title ?? nameInPath(task.url), download.ext, task.id);
  const url = `/tasks/${task.id}/file`;
  return { name, mime_type, size, sha256, duration, width, height, url, warnings };
}

/** A limit of a file: how the run fails beyond it, and where it comes from. */
interface FileLimit {
  bytes: number;
  code: "too_large" | "quota_exceeded";
  source: string;
}

/** Returns the smallest of the limits of a file. */
function fileLimit(
  { maxFileBytes, storage: { maxBytes } }: ProduceFileDeps,
  bytesLeft = Infinity,
): FileLimit {
  const limits: [FileLimit, ...FileLimit[]] = [
    { bytes: maxFileBytes, code: "too_large", source: "MAX_FILE_BYTES" },
    { bytes: maxBytes, code: "too_large", source: "MAX_STORED_BYTES" },
    { bytes: bytesLeft, code: "quota_exceeded", source: "what is left of the key's max_bytes" },
  ];
  return limits.reduce((least, limit) => (limit.bytes < least.bytes ? limit : least));
}

/** Adds to the engine's `too_large` which limit that was; returns other errors as they are. */
function withLimit(error: unknown, { code, source }: FileLimit): unknown {
  if (!(error instanceof ServiceError) || error.code !== "too_large") return error;
  const message = `${error.message} (${source})`;
  return new ServiceError(code, message, { cause: error, retryable: false });
}

/** Returns what an earlier run of the task downloaded; `null` if there is none. */
function earlierChoice({ info, options }: Task): FormatChoice | null {
  try {
    return info && chooseFormat(info, options);
  } catch {
    // It had chosen nothing.
    return null;
  }
}

function choose(
  page: ResolvedPage,
  options: TaskOptions,
  before: FormatChoice | null,
): FormatChoice {
  return (before && findAgain(before, page, options)) ?? chooseFormat(page, options);
}

async function assertFreeSpace({ files, minFreeBytes }: ProduceFileDeps): Promise<void> {
  const freeBytes = await files.freeBytes();
  if (freeBytes >= minFreeBytes) return;
  throw new ServiceError(
    "disk_full",
    `not enough disk space: ${minFreeBytes} bytes must be free, ${freeBytes} are`,
  );
}
