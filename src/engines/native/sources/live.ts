import { appendFile, readFile } from "node:fs/promises";
import { sleep, untilAborted } from "../../../async/deadline.ts";
import { unlessMissing } from "../../../files/disk-error.ts";
import { isServiceError, isUpstreamError, ServiceError } from "../../../model/errors.ts";
import type { SegmentList, TimeSpan } from "../../../manifests/segments.ts";
import type { FetchStats } from "./fetch-stats.ts";
import type { RecordedSegment, Restarts } from "./live-dates.ts";
import { LiveNumbering } from "./live-numbering.ts";

/** A live stream, with its list as it was first read. */
interface LiveSource {
  list: SegmentList;
  reload: () => Promise<SegmentList>;
  /** File that records the listed segments for a later run: the stream's own list forgets them. */
  liveJournalPath: string;
}

export interface LiveOptions {
  /** How much of the stream is recorded, seconds. */
  maxLiveS: number;
  signal: AbortSignal;
  /** Aborted when the recording is to end. */
  finish: AbortSignal;
  /** Gets the segments that were not listed, and why the recording ended before the stream. */
  stats: FetchStats;
  /** Of all sources of the recording. */
  restarts: Restarts;
}

/** Resolves with whether the server now has other media under the URL of a segment that was recorded. */
type HasChanged = (segment: RecordedSegment) => Promise<boolean>;

/** Limit of reloads in a row without a new segment; then the stream has ended. */
const maxIdleReloads = 10;

/** How often media are fetched again because lists have gone back: those of some caches do so all the time. */
const maxChecks = 5;

/** How long segments may be missing if their list does not say when they are there, seconds: the servers of a CDN get them one after the other. */
const usualLateS = 3;

/**
 * Yields the segments of a live stream as they appear, those of earlier runs first, until it ends, stops
 * growing, `maxLiveS` seconds are recorded, or `finish` is aborted and it has yielded a segment.
 *
 * @throws ServiceError `live_stream` if `maxLiveS` is 0.
 */
export async function* followLive(
  source: LiveSource,
  options: LiveOptions & { hasChanged: HasChanged },
): AsyncGenerator<RecordedSegment> {
  const { list: first, liveJournalPath: journalPath } = source;
  const { maxLiveS, finish, stats, restarts, hasChanged } = options;
  if (maxLiveS === 0) {
    throw new ServiceError("live_stream", "the stream is live, and MAX_LIVE_S is 0: live streams are not recorded");
  }
  const numbering = new LiveNumbering(restarts);
  let last: RecordedSegment | null = null;
  let recordedS = 0;
  const isOther = createChangeCheck(hasChanged);
  const isFinished = () => finish.aborted && last !== null;
  const record = (segment: RecordedSegment, list: SegmentList): RecordedSegment => {
    const free = last === null ? 0 : segment.sequence - last.sequence - 1;
    const isMoved = numberingOf(segment) !== numberingOf(last);
    if (free > 0) stats.addUnlisted({ atS: recordedS, segments: isMoved ? null : free });
    numbering.add(segment);
    last = segment;
    // A stream that states no durations must end too.
    recordedS += segment.durationS || list.refreshS;
    const { isOld = false, lateS = isOld ? 0 : usualLateS } = segment;
    return { ...segment, lateS };
  };
  const addDoubt = () => {
    if (numbering.isDoubtful(true)) stats.addUnlisted({ atS: recordedS, segments: null });
  };
  for (const segment of await readJournal(journalPath)) {
    yield record({ ...segment, isOld: true }, first);
    if (recordedS >= maxLiveS) return;
  }
  let list: LiveList = first;
  for (let idleReloads = 0; ;) {
    const doubt = numbering.doubtIn(list);
    const added = numbering.newIn(list);
    if (doubt !== undefined && (await isOther(doubt, added[0]))) stats.addUnlisted({ atS: recordedS, segments: null });
    const lines = added.map((segment) => `\n${JSON.stringify(segment)}\n`);
    if (lines.length > 0) await appendFile(journalPath, lines.join(""));
    for (const segment of added) {
      if (isFinished()) return;
      yield record(segment, list);
      if (recordedS >= maxLiveS) return;
    }
    idleReloads = added.length > 0 ? 0 : idleReloads + 1;
    if (list.hasEnded && list.endGaps !== undefined) stats.addUnlisted({ atS: recordedS, segments: list.endGaps });
    if (list.hasEnded) addDoubt();
    if (idleReloads > maxIdleReloads) stats.lost = list.failure ?? "it listed nothing new";
    if (list.hasEnded || idleReloads > maxIdleReloads) return;
    const reloading = reloadLater(list, source, options);
    try {
      list = await (last === null ? reloading : untilAborted(reloading, finish));
    } catch (error) {
      if (!isFinished() || error !== finish.reason) throw error;
      addDoubt();
      return;
    }
  }
}

/** Creates what finds out whether there are other media in place of a segment that lists have gone back before, unless `next` shows a restart. */
function createChangeCheck(hasChanged: HasChanged) {
  let left = maxChecks;
  return async (segment: RecordedSegment, next: RecordedSegment | undefined): Promise<boolean> => {
    const isKnown = next !== undefined && numberingOf(next) !== numberingOf(segment);
    if (isKnown || left === 0) return false;
    left -= 1;
    return hasChanged(segment);
  };
}

/** Identifies the numbers, or the times, with which a list continues. */
const numberingOf = (segment: RecordedSegment | null): string =>
  `${segment?.moved?.sequence ?? 0} ${segment?.moved?.restart?.count ?? 0}`;

/** A list, or why it could not be read. */
type LiveList = SegmentList & { failure?: string };

/** What a manifest may say of a Period: it is no reason to lose what was recorded before. */
const refusals = ["drm_protected", "format_unavailable"] as const;

/**
 * Waits, and reads the list again; waits no longer once the recording is to end. Returns `list` without segments if the
 * server fails, or the stream cannot be recorded for now: the next reload may succeed.
 */
async function reloadLater(
  list: SegmentList,
  { reload }: LiveSource,
  { signal, finish }: LiveOptions,
): Promise<LiveList> {
  await sleep(list.refreshS * 1000, finish.aborted ? signal : AbortSignal.any([signal, finish]));
  signal.throwIfAborted();
  try {
    return await reload();
  } catch (error) {
    signal.throwIfAborted();
    if (isServiceError(error, ...refusals)) return { ...list, segments: [], hasEnded: false, failure: error.message };
    if (!isUpstreamError(error)) throw error;
    const { upstreamStatus: status } = error;
    const failure = status === undefined ? "it could not be read" : `its server responds with status ${status}`;
    return { ...list, segments: [], hasEnded: false, failure };
  }
}

async function readJournal(path: string): Promise<RecordedSegment[]> {
  const text = (await unlessMissing(readFile(path, "utf8"))) ?? "";
  return text.split("\n").flatMap((line) => {
    try {
      return [withEnds(JSON.parse(line) as JournalSegment)];
    } catch {
      // Empty, or cut off when the process was killed.
      return [];
    }
  });
}

/** JSON has `null` for a span without a start or an end. */
type JournalSegment = Omit<RecordedSegment, "span"> & { span?: Record<keyof TimeSpan, number | null> };

function withEnds({ span, ...segment }: JournalSegment): RecordedSegment {
  if (span === undefined) return segment;
  return { ...segment, span: { startS: span.startS ?? Number.NEGATIVE_INFINITY, endS: span.endS ?? Infinity } };
}

/** Some servers refuse single segments, which players skip. If they refuse more than these in a row, they refuse the stream. */
const maxRefused = 5;

/** Creates what decides whether a live stream continues without a segment that could not be fetched. */
export function createLosses(finish: AbortSignal) {
  /** Indexes of the segments; their requests end in any order. */
  const refused = new Set<number>();
  const messages = new Set<number>();
  return {
    /** Returns false if the error ends the recording. */
    add(error: unknown, { isInit, isOld, index }: { isInit: boolean; isOld: boolean; index: number }): boolean {
      if (isGone(error)) return true;
      if (!isUpstreamError(error)) return false;
      if (finish.aborted) return true;
      if (error.upstreamStatus !== 403 || isInit) return false;
      // The URLs of an earlier run may have expired.
      if (isOld) return true;
      refused.add(index);
      return index > 0 && countFrom(refused, index, -1) + countFrom(refused, index + 1, 1) <= maxRefused;
    },
    /** Returns false if a message in place of a segment ends the recording: the stream has begun with too many of them. */
    addMessage({ isInit, index }: { isInit: boolean; index: number }): boolean {
      if (!isInit) messages.add(index);
      return countFrom(messages, 0, 1) <= maxRefused;
    },
  };
}

function countFrom(indexes: ReadonlySet<number>, index: number, step: number): number {
  let count = 0;
  while (indexes.has(index + count * step)) count += 1;
  return count;
}

/** A live segment that has expired on the server is a gap in the recording, not its end. */
export function isGone(error: unknown): error is ServiceError {
  return error instanceof ServiceError && [404, 410].includes(error.upstreamStatus ?? 0);
}

const lateRetryMs = 500;

/** Waits for a segment of a live stream that may be so late. */
export async function fetchInTime<T>(
  fetch: () => Promise<T>,
  lateS: number,
  { signal, finish }: Pick<LiveOptions, "signal" | "finish">,
): Promise<T> {
  const endMs = performance.now() + 1000 * lateS;
  for (;;) {
    const isLast = performance.now() >= endMs;
    try {
      return await fetch();
    } catch (error) {
      if (!isGone(error) || isLast || finish.aborted) throw error;
      await sleep(lateRetryMs, signal);
      signal.throwIfAborted();
    }
  }
}

/** How long segments may take once the recording is to end. */
const endGraceMs = 10_000;

/** Returns a function that rejects with `upstream_timeout` if a result takes too long after `finish`. */
export function createEndLimit(finish: AbortSignal, signal: AbortSignal) {
  const { promise: late, reject } = Promise.withResolvers<never>();
  late.catch(() => {});
  const onFinish = () => {
    const error = new ServiceError("upstream_timeout", `a segment took over ${endGraceMs} ms`);
    const timer = setTimeout(() => reject(error), endGraceMs);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  };
  if (finish.aborted) onFinish();
  else finish.addEventListener("abort", onFinish, { once: true, signal });
  return <T>(result: Promise<T>): Promise<T> => Promise.race([result, late]);
}
