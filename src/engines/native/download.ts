import { mkdir, rm, stat, statfs } from "node:fs/promises";
import { basename, join } from "node:path";
import { diskError } from "../../files/disk-error.ts";
import { StreamJournal } from "../../files/stream-journal.ts";
import type { FileWarning } from "../../model/file-warnings.ts";
import { isUpstreamError, ServiceError } from "../../model/errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { Download, DownloadContext, DownloadJob, EngineDeps, MediaInfo, OwnSubtitles } from "../engine.ts";
import { type HashedFile, hashFile } from "./damage/hash-file.ts";
import { inspectFile, truncatedError } from "./inspect/inspect.ts";
import { isWholeFile, mustMarkEnd } from "./inspect/whole-file.ts";
import { openEndCheck } from "./list-ends.ts";
import { fetchAdditions } from "./output/additions.ts";
import { assemble } from "./output/assemble.ts";
import type { Assembled, FileWork } from "./output/assemble-streams.ts";
import { findFileWarnings } from "./output/file-warnings.ts";
import { createGradualFlush } from "./parts/disk-writes.ts";
import { createAudioChoice } from "../../remux/audio-choice.ts";
import { openPartStore } from "./parts/part-store.ts";
import type { TakeBytes } from "./parts/receiver.ts";
import { SourceFetcher } from "./sources/fetch-sources.ts";
import { createFormatLocator } from "./sources/locate-format.ts";
import { listedKinds, planDownload } from "./sources/plan.ts";
import { hasSelection, selectRanges } from "./sources/select-segments.ts";
import { ProgressTracker } from "./sources/progress-tracker.ts";

type WorkerDownloadContext = DownloadContext &
  Pick<EngineDeps, "concurrentFragments" | "minFreeBytes" | "minSpeedBps"> & {
    client: HttpClient;
    /** As in `PartStoreOptions`. */
    takeBytes?: TakeBytes;
    /** Called before and, with `null`, after work on complete files. */
    onWork(work: FileWork | null): void;
  };

/** Implements `Engine.download` in the calling process. */
export async function download(job: DownloadJob, context: WorkerDownloadContext): Promise<Download> {
  try {
    const run = await planRun(job, context);
    try {
      const assembled = await fetchAndAssemble(run);
      run.progress.startProcessing();
      const lengthWarnings = await checkLengths(run);
      const { damage, ...file } = await finishFile(run, assembled.path);
      const { others, warnings } = await run.additions.writeFiles(file.duration ?? Infinity);
      await run.journal.untilFound(run.signal);
      const { found, offered } = run.audioChoice;
      const audioLanguages = [...found];
      const offeredLanguages = [...offered].slice(0, maxOffered);
      return {
        ...file,
        audioLanguages,
        offeredLanguages,
        ownSubtitles: ownSubtitlesOf(run, assembled),
        others,
        warnings: [...lengthWarnings, ...findWarnings(run, { ...assembled, damage }, file), ...warnings],
      };
    } finally {
      await endRun(run);
    }
  } catch (error) {
    context.signal.throwIfAborted();
    throw diskError(`download into ${basename(job.folder)}`, error);
  }
}

/** Returns the subtitles within the media; those that both files and segments state, once. */
function ownSubtitlesOf({ additions }: DownloadRun, { written }: Assembled): OwnSubtitles[] {
  const unread = (written?.subtitles ?? []).map((track) => ({ ...track, isText: false }));
  const all = [...additions.own.tracks(), ...unread];
  return [...Map.groupBy(all, ({ language, codec }) => `${language} ${codec}`).values()].map(([first]) => first!);
}

/** How many languages of the media are named at most. */
const maxOffered = 100;

type DownloadRun = Awaited<ReturnType<typeof planRun>>;

/** Reads the manifests and opens the parts of earlier runs. */
async function planRun(job: DownloadJob, context: WorkerDownloadContext) {
  const { client, concurrentFragments, minFreeBytes, minSpeedBps, onProgress, takeBytes } = context;
  const { finish = new AbortController().signal } = context;
  const { folder, maxBytes, maxLiveS } = job;
  /** Aborted at the end of the run, to stop what is still fetched ahead after a failure. */
  const ending = new AbortController();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  const plan = selectRanges(await planDownload(job, createFormatLocator(client, { ...job, signal })), job.ranges);
  const describeEnds = await openEndCheck(plan, folder);
  const partsFolder = join(folder, "parts");
  // Everything else is written a second time, and what was selected for ranges once more when it is cut.
  const isKept = plan.isPassthrough && job.embed !== "all" && !job.isAudioFile && job.ranges.length === 0;
  const copies = isKept ? 1 : hasSelection(plan) ? 3 : 2;
  await mkdir(partsFolder, { recursive: true });
  const parts = await openPartStore({
    folder: partsFolder,
    client,
    identity: plan.identity,
    maxBytes,
    minSpeedBps,
    takeBytes,
    checkFreeSpace: (bytes, isPartial) => checkFreeSpace(partsFolder, (isPartial ? 3 : copies) * bytes, minFreeBytes),
  });
  const progress = new ProgressTracker(plan, parts, onProgress);
  const ahead = 2 * concurrentFragments;
  const additions = fetchAdditions(job, { client, isKept, signal });
  const fetcher = new SourceFetcher({
    parts,
    progress,
    client,
    finish,
    signal,
    maxLiveS,
    ahead,
    readOwn: (source, paths) => withTimeLimit({ context }, "read", paths, () => additions.own.read(source, paths)),
    needsTexts: job.ownSubtitles.length > 0,
  });
  const flush = createGradualFlush();
  /** The parts are complete, but no media: a later run must not use them. */
  const arePartsUseless = false as boolean;
  return {
    job,
    context,
    ending,
    signal,
    plan,
    describeEnds,
    partsFolder,
    parts,
    progress,
    fetcher,
    flush,
    additions,
    journal: new StreamJournal(folder),
    audioChoice: createAudioChoice(job.audioLanguages),
    arePartsUseless,
  };
}

async function checkFreeSpace(folder: string, bytes: number, minFreeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes - bytes >= minFreeBytes) return;
  throw new ServiceError(
    "disk_full",
    `not enough disk space: the download needs ${bytes} more bytes and ${minFreeBytes} must stay free (MIN_FREE_BYTES), ${freeBytes} are free`,
  );
}

async function fetchAndAssemble(run: DownloadRun): Promise<Assembled> {
  const { job, plan, fetcher, flush, additions, audioChoice, journal, signal } = run;
  return assemble(plan, {
    ...job,
    fetcher,
    inspect: (path) => inspect(run, path),
    withTimeLimit: (kind, paths, work) => withTimeLimit(run, kind, paths, work),
    onWritten: flush.onWritten,
    additions,
    journal,
    audioChoice,
    signal,
  });
}

async function inspect(run: DownloadRun, path: string): Promise<MediaInfo> {
  try {
    return await withTimeLimit(run, "read", [path], () => inspectFile(path, run.parts.isLengthKnown(path)));
  } catch (error) {
    // An abort or a disk error says nothing about the content.
    run.arePartsUseless = isUpstreamError(error);
    throw error;
  }
}

/** Announces work on complete files, whose time the service limits. */
async function withTimeLimit<T>(
  { context: { onWork } }: Pick<DownloadRun, "context">,
  kind: FileWork["kind"],
  paths: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  const files = await Promise.all(paths.map((path) => stat(path)));
  onWork({ kind, bytes: files.reduce((sum, { size }) => sum + size, 0) });
  try {
    return await work();
  } finally {
    onWork(null);
  }
}

type FinishedFile = Omit<Download, "warnings" | "others" | "audioLanguages" | "offeredLanguages" | "ownSubtitles"> &
  HashedFile;

/** Inspects and hashes the file while it is flushed to the disk. */
async function finishFile(run: DownloadRun, path: string): Promise<FinishedFile> {
  const [info, hashed] = await Promise.all([inspect(run, path), hashFile(path, run.signal), run.flush.finish(path)]);
  const { size } = await stat(path);
  return { path, size, ...hashed, ...info };
}

/**
 * Asks the containers of files whether they have their end: a server may have only a part of a file, or its connection may
 * have been lost.
 * @throws ServiceError `upstream_unreachable` if they have not, and the server stated no length.
 */
async function checkLengths(run: DownloadRun): Promise<FileWarning[]> {
  const files = new Set<string>(run.plan.sources.filter(({ kind }) => kind === "file").map(({ name }) => name));
  const unconfirmed = new Set(run.parts.unconfirmed());
  const unknown = [...unconfirmed].filter((path) => !files.has(basename(path)));
  const warnings: FileWarning[] = [];
  for (const path of run.parts.complete().filter((each) => files.has(basename(each)))) {
    const isWhole = isWholeFile(path);
    const isConfirmed = !unconfirmed.has(path);
    if (isWhole === null && !isConfirmed) unknown.push(path);
    if (isWhole === true || (isWhole === null && !(isConfirmed && mustMarkEnd(path)))) continue;
    run.arePartsUseless ||= !isConfirmed;
    if (!isConfirmed) throw truncatedError();
    const message = "the file ends before its container says, although the server sent all that it has of it";
    warnings.push({ code: "frames_missing", message });
  }
  const found = await run.describeEnds(run.signal);
  const what = files.size > 0 ? "the file" : `${unknown.length} segments`;
  const rule = "and closed the connection after what it sent";
  if (unknown.length > 0) found.push(`the server stated no length of ${what} ${rule}`);
  return found.length > 0 ? [...warnings, { code: "length_unknown", message: found.join("; ") }] : warnings;
}

function findWarnings(
  { plan, job, fetcher }: DownloadRun,
  assembled: Assembled & Pick<HashedFile, "damage">,
  { duration }: MediaInfo,
): FileWarning[] {
  const { path, copiedFrom = path, presentedS = duration, written, warnings, joined = [], cut, damage } = assembled;
  const file = {
    path: copiedFrom,
    durationS: presentedS,
    written,
    joined,
    damage,
    listedKinds: listedKinds(plan, job.audioOnly),
    ...(cut && { cut }),
  };
  return [...warnings, ...findFileWarnings(fetcher.stats, file)];
}

async function endRun({ ending, parts, journal, partsFolder, arePartsUseless }: DownloadRun): Promise<void> {
  ending.abort();
  journal.close();
  await parts.close();
  if (arePartsUseless) await rm(partsFolder, { recursive: true, force: true });
}
