import type { Download, DownloadJob, Embedding, Engine } from "../engines/engine.ts";
import type { FileStore } from "../files/files.ts";
import type { Library } from "./library/library.ts";
import { isServiceError, ServiceError } from "../model/errors.ts";
import type { FileWarning } from "../model/file-warnings.ts";
import { hasVideo } from "../model/format-ranking.ts";
import { type DownloadFormat, type Format, pageUrlOf, type PageInfo } from "../model/page-info.ts";
import type { ResultFile, TaskFile, TaskOptions } from "../model/task.ts";
import { nameInPath } from "../model/url-parts.ts";
import type { FindSkips, SkipSegment } from "../resolvers/sponsor-block.ts";
import { chooseAudio, warnOfMissing } from "./choice/choose-audio.ts";
import { chooseSubtitles, ownLanguages, warnOfMissingSubtitles } from "./choice/choose-subtitles.ts";
import { describeMedia } from "./choice/describe-media.ts";
import { findSkips, rangesToKeep, type Skips } from "./choice/skips.ts";
import { checkFile } from "./check-file.ts";
import { downloadTarget, type Target, type TargetDeps } from "./download-target.ts";
import { listFiles } from "./list-files.ts";
import type { ProgressReport } from "./progress.ts";
import type { StorageLimit } from "./storage-limit.ts";
import { Interruption, type TaskRun } from "./task-lease.ts";

export interface ProduceFileDeps extends TargetDeps {
  engine: Engine;
  files: FileStore;
  /** Limit of the download and of the result, bytes. */
  maxFileBytes: number;
  /** What the files of all tasks may have together; one file may not have more. */
  storage: StorageLimit;
  /** Free disk space that a run needs to start, bytes. */
  minFreeBytes: number;
  /** Is called with each file before it is saved; default: there is no library. */
  library?: Pick<Library, "expect"> | undefined;
  findSkips: FindSkips;
  /** How much of a live stream is recorded, seconds; 0: nothing. */
  maxLiveS: number;
}

/** The members of a task that describe its result. */
type ProducedFiles = { file: TaskFile; files: ResultFile[] };

/**
 * Resolves the task's page, chooses a format, downloads it and saves the result. Returns its description.
 * Updates the task's `info` and `progress` on the way. A later run of the task and a page that is resolved
 * again because its URLs have expired find the same format, if it is still there.
 *
 * @throws ServiceError of the resolver, `readInTurn`, the engine, the file store and `chooseFormat`; `quota_exceeded`
 * if the download is larger than `bytesLeft` of the claim; `disk_full` if too little space is free; `signal.reason` if aborted
 * before the result is being saved.
 */
export async function produceFile(
  run: TaskRun,
  progress: ProgressReport,
  deps: ProduceFileDeps,
): Promise<ProducedFiles> {
  const { files } = deps;
  const { claim, taskLease } = run;
  const { task } = claim;
  const { signal } = run.controller;
  const limit = fileLimit(deps, claim.bytesLeft);
  signal.throwIfAborted();
  await assertFreeSpace(deps);
  let skips: Skips = { segments: [], warnings: [] };
  // It starts while the page is read.
  deps.engine.prepare?.();
  const { target, download } = await downloadTarget(run, progress, deps, async (current) => {
    const folder = await files.openWorkFolder(task.id);
    signal.throwIfAborted();
    skips = await findSkips(current.page, task.options, deps.findSkips, signal);
    const planned = planDownload(current, task.options, skips.segments);
    const job = { ...planned, folder, maxBytes: limit.bytes, maxLiveS: deps.maxLiveS };
    const onWaiting = (isWaiting: boolean) => progress.waitFor(isWaiting ? "host" : null);
    const running = { signal, finish: run.finish.signal, onProgress: progress.report, onWaiting };
    return deps.engine.download(job, running).catch((error: unknown) => {
      throw withLimit(error, limit);
    });
  });
  // If the process was suspended for longer than the lease, another run may use these files.
  if (!(await taskLease.renew())) throw signal.reason ?? new Interruption("leaseExpired");
  signal.throwIfAborted();
  const others = download.others.map(({ path }) => path);
  const warnings = [...target.warnings, ...listWarnings(download, target, task.options, skips)];
  await deps.library?.expect(task.id, task.owner);
  await files.saveResult(task.id, download.path, others);
  return describeFiles(download, warnings, { id: task.id, title: target.page.title ?? nameInPath(task.url) });
}

function describeFiles(
  { path, ext, mime_type, size, sha256, duration, width, height, others }: Download,
  warnings: FileWarning[],
  named: { id: string; title: string | null },
): ProducedFiles {
  const files = listFiles({ kind: "media", path, ext, mime_type, size, sha256 }, others, named);
  const { name } = files[0];
  const url = `/tasks/${named.id}/file`;
  return { file: { name, mime_type, size, sha256, duration, width, height, url, warnings }, files };
}

/** Returns what the file lacks of what its page says, and of what was asked for and is not listed. */
function listWarnings(download: Download, { page, choice }: Target, options: TaskOptions, skips: Skips): FileWarning[] {
  return [
    ...checkFile(download, page, options, skips.segments),
    ...warnOfMissing(chooseAudio(page, choice, options), download),
    ...warnOfMissingSubtitles(chooseSubtitles(page, options), options, download),
    ...skips.warnings,
  ];
}

async function assertFreeSpace({ files, minFreeBytes }: ProduceFileDeps): Promise<void> {
  const freeBytes = await files.freeBytes();
  if (freeBytes >= minFreeBytes) return;
  const rule = `${minFreeBytes} bytes must be free (MIN_FREE_BYTES), ${freeBytes} are`;
  throw new ServiceError("disk_full", `not enough disk space: ${rule}`);
}

/** A limit of a file: how the run fails beyond it, and where it comes from. */
interface FileLimit {
  bytes: number;
  code: "too_large" | "quota_exceeded";
  source: string;
}

function fileLimit({ maxFileBytes, storage: { maxBytes } }: ProduceFileDeps, bytesLeft = Infinity): FileLimit {
  const limits: [FileLimit, ...FileLimit[]] = [
    { bytes: maxFileBytes, code: "too_large", source: "MAX_FILE_BYTES" },
    { bytes: maxBytes, code: "too_large", source: "MAX_STORED_BYTES" },
    { bytes: bytesLeft, code: "quota_exceeded", source: "what is left of the key's max_bytes" },
  ];
  return limits.reduce((least, limit) => (limit.bytes < least.bytes ? limit : least));
}

/** Returns what the engine is to download and write, but for where, how much, and how long. */
function planDownload(
  { page, choice }: Target,
  options: TaskOptions,
  segments: readonly SkipSegment[],
): Omit<DownloadJob, "folder" | "maxBytes" | "maxLiveS"> {
  const [marked, skipped] = options.skip_mode === "chapters" ? [segments, []] : [[], segments];
  const ranges = rangesToKeep(options, skipped);
  const audioOnly = options.audio_only === true || isOfVideo(choice.format, page);
  const { max_height, preferred_codecs } = options;
  return {
    ...chooseAudio(page, choice, options).tracks,
    preference: audioOnly ? {} : { ...(max_height && { max_height }), ...(preferred_codecs && { preferred_codecs }) },
    pageUrl: pageUrlOf(page),
    description: describeMedia(page, marked),
    embed: embeddingOf(options, marked.length > 0),
    audioOnly,
    isAudioFile: audioOnly || ranges.length > 0,
    subtitles: chooseSubtitles(page, options).wanted,
    ownSubtitles: ownLanguages(options),
    ranges,
  };
}

/** Whether the page lists audio also as that of video in the same media: else, if media have video is known only when they are there. */
function isOfVideo(format: DownloadFormat, { formats }: PageInfo): boolean {
  const isSame = ({ url, manifest_url }: Format) => url === format.url && url !== manifest_url;
  return !hasVideo(format) && formats.some((other) => hasVideo(other) && isSame(other));
}

/** @param isMarked Chapters were asked for. */
function embeddingOf({ embed }: TaskOptions, isMarked: boolean): Embedding {
  if (embed === undefined) return isMarked ? "all" : "made";
  return embed ? "all" : "none";
}

/** Adds to the engine's `too_large` which limit that was; returns other errors as they are. */
function withLimit(error: unknown, { code, source }: FileLimit): unknown {
  if (!isServiceError(error, "too_large")) return error;
  const message = `${error.message} (${source})`;
  return new ServiceError(code, message, { cause: error, retryable: false });
}
