import { isDeepStrictEqual } from "node:util";
import { Value } from "@sinclair/typebox/value";
import type { Download } from "../engines/engine.ts";
import { boundInfo } from "../model/bounded-info.ts";
import type { FileWarning } from "../model/file-warnings.ts";
import { isServiceError, ServiceError } from "../model/errors.ts";
import { type DownloadFormat, PageInfo, publicInfo } from "../model/page-info.ts";
import type { Task, TaskOptions } from "../model/task.ts";
import { isManifest } from "../parsers/media-type.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { TaskChange } from "../feed/task-changes.ts";
import type { Progress } from "../model/progress.ts";
import { PlaylistFound, withEntryMetadata } from "./choice/entries.ts";
import type { ProgressReport } from "./progress.ts";
import { readInTurn, type ReadingTurns } from "./read-in-turn.ts";
import type { TaskRun } from "./task-lease.ts";
import { chooseFormat, chooseIfListed, chooseInstead, type FormatChoice } from "../resolvers/choose-format.ts";

/** What is downloaded, and the page that lists it. */
export interface Target {
  page: ResolvedPage;
  choice: FormatChoice;
  /** Formats that were chosen before, and of which the server has nothing. */
  warnings: FileWarning[];
}

/** A page with what only its download needs. */
type ResolvedPage = Omit<PageInfo, "formats"> & { formats: DownloadFormat[] };

export interface TargetDeps extends ReadingTurns {
  resolver: Resolver;
}

/** How many formats in turn may be ones of which the server has nothing. */
const maxSkipped = 3;

/** A server that expires its URLs after a few bytes must not keep a run busy for ever. */
const maxRefreshes = 20;

/**
 * Resolves a task's page and downloads what the task asks for, if possible the format of its earlier run. If the server refuses one of the
 * URLs or no longer knows it, it may have expired: the page is resolved again, once, and again whenever there are more bytes than at the
 * last refusal, at most 20 times. If the server then has nothing of the format, the next one takes its place, as in players (RFC 8216bis
 * §6.3.4), unless the task asks for that very format.
 *
 * @throws the error of `download` if URLs without new bytes are refused again, or are the same as before; the errors of
 * the resolver, `readInTurn`, the lease and `chooseFormat`; `no_media` if the resolver does not look for formats; PlaylistFound if
 * the task is for entries, and its page lists some and no format; the reason of the run's abort
 */
export async function downloadTarget(
  run: TaskRun,
  progress: ProgressReport,
  deps: TargetDeps,
  download: (target: Target) => Promise<Download>,
): Promise<{ target: Target; download: Download }> {
  const { task, stalledCount } = run.claim;
  const resolve = (before: FormatChoice | null, isFirst: boolean) =>
    resolveTarget(before, { run, deps, isFirst, stalledCount: progress.hasProgressed ? 0 : stalledCount });
  let target = await resolve(chooseIfListed(task.info, task.options), true);
  let refusal: unknown;
  for (let refreshes = 0; ; refreshes += 1) {
    const bytesBefore = progress.bytes ?? 0;
    try {
      return { target, download: await download(target) };
    } catch (error) {
      const bytes = progress.bytes ?? 0;
      const hasNewBytes = bytes > bytesBefore;
      const isWorthwhile = hasNewBytes || refreshes === 0;
      if (!mayHaveExpired(error) || refreshes === maxRefreshes) throw refusal ?? error;
      if (isWorthwhile) {
        const fresh = await resolve(target.choice, false);
        const isOther = hasNewBytes || !isDeepStrictEqual(fresh.choice, target.choice);
        target = { ...fresh, warnings: target.warnings };
        if (isOther) continue;
      }
      refusal ??= error;
      const next = bytes === 0 ? nextTarget(target, task.options, error) : null;
      if (next === null) throw refusal;
      target = next;
    }
  }
}

/** Returns the target with the next format of the same kind; `null`: there is none, or none may take the place of the one that is asked for. */
function nextTarget(
  { page, choice, warnings }: Target,
  options: TaskOptions,
  { message: why }: ServiceError,
): Target | null {
  if (options.format_id !== undefined || warnings.length >= maxSkipped) return null;
  const { format_id: id } = choice.format;
  const left = { ...page, formats: page.formats.filter(({ format_id }) => format_id !== id) };
  const next = chooseInstead(choice, left, options);
  if (next === null) return null;
  const message = `the format ${id} was left, as its server does not have it: ${why}`;
  return { page: left, choice: next, warnings: [...warnings, { code: "format_left", message }] };
}

/** A reading of the page of a task. */
interface PageReading {
  run: TaskRun;
  deps: TargetDeps;
  /** It begins the run: the task shows what it waits for, and that its download begins. */
  isFirst: boolean;
  /** As in `readInTurn`. */
  stalledCount: number;
}

/**
 * Resolves the page and chooses a format of it.
 *
 * @throws as `downloadTarget`. That there are no media is retryable if the URL is that of a manifest, in whose place some servers send a message
 * for a moment, or if the page has had some before.
 */
async function resolveTarget(before: FormatChoice | null, reading: PageReading): Promise<Target> {
  const { task } = reading.run.claim;
  try {
    const page = await readPage(before, reading);
    return { page, choice: chooseFormat(page, task.options, before), warnings: [] };
  } catch (error) {
    const ofManifest = isManifest(null, new URL(task.url)) ? (["no_media"] as const) : [];
    const passing = before === null ? ofManifest : (["no_media", "upstream_invalid"] as const);
    if (!isServiceError(error, ...passing)) throw error;
    throw new ServiceError(error.code, error.message, { cause: error, retryable: true });
  }
}

/** Resolves the page in its turn, and stores what may be shown of it. */
async function readPage(
  before: FormatChoice | null,
  { run, deps, isFirst, stalledCount }: PageReading,
): Promise<ResolvedPage> {
  const { taskLease, claim } = run;
  const { url, options, owner, collection } = claim.task;
  const { signal } = run.controller;
  const showStage = (stage: Progress["stage"], isWaiting = false): TaskChange =>
    isFirst ? { progress: { stage, ...earlierProgress(claim.task), ...(isWaiting && { waiting_for: "host" }) } } : {};
  const read = async () => {
    const { referrer: origin, entry: { chapters_url: listed } = {} } = collection ?? {};
    const resolved: unknown = await deps.resolver.resolve(new URL(url), {
      signal,
      owner,
      forDownload: true,
      needsHeights: options.max_height !== undefined,
      needsCodecs: options.preferred_codecs !== undefined && options.preferred_codecs.length > 0,
      chaptersUrl: listed === undefined ? undefined : new URL(listed),
      referrer: origin === undefined ? undefined : new URL(origin),
      onWaiting: isFirst ? (isWaiting) => taskLease.updateWithRetry(showStage("resolving", isWaiting)) : undefined,
    });
    signal.throwIfAborted();
    if (!Value.Check(PageInfo, resolved)) throw noFormatsError(deps.resolver);
    const found = withEntryMetadata<ResolvedPage>(resolved, collection?.entry);
    if (isFirst && isPlaylist(found) && options.entries !== undefined) throw new PlaylistFound(found);
    // What an earlier run has chosen stays known.
    const hasVanished = before !== null && found.formats.length === 0;
    if (hasVanished) return found;
    const chosen = () => chosenIds(() => chooseFormat(found, options, before));
    const info = boundInfo(publicInfo(found), maxStoredBytes, chosen);
    await taskLease.updateWithRetry({ info, ...showStage("downloading") }, { stalledCount });
    return found;
  };
  return readInTurn(read, run, deps, { stalledCount, change: showStage("resolving") });
}

/** A dead worker's progress stays: the bytes of this run are compared with it. */
function earlierProgress({ progress }: Task) {
  const { downloaded_bytes = null, total_bytes = null, is_live } = progress ?? {};
  const sizes = { downloaded_bytes, total_bytes, speed: null, eta: null };
  return { ...sizes, ...(is_live !== undefined && { is_live }) };
}

function noFormatsError({ name }: Resolver): ServiceError {
  return new ServiceError("no_media", `there is no format to download: the resolver ${name} does not look for any`);
}

/** Longest information about a page in a task, bytes of JSON: a record, which has more than it, may have 256,000. */
const maxStoredBytes = 230_000;

/** Returns the formats that stay in a record that is too long. */
function chosenIds(choose: () => FormatChoice): (string | undefined)[] {
  try {
    const { format, audio } = choose();
    return [format.format_id, audio?.format_id];
  } catch {
    // Nothing is downloaded.
    return [];
  }
}

function isPlaylist({ formats, entries = [] }: PageInfo): boolean {
  return formats.length === 0 && entries.length > 0;
}

/** Statuses of servers for a URL whose token has expired. */
const expiredStatuses: ReadonlySet<number | undefined> = new Set([401, 403, 404, 410]);

function mayHaveExpired(error: unknown): error is ServiceError {
  return error instanceof ServiceError && expiredStatuses.has(error.upstreamStatus);
}
