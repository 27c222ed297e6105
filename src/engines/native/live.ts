import { appendFile, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { isMissing } from "../../files/disk-error.ts";
import { ServiceError } from "../../errors.ts";
import type { Segment, SegmentList } from "../../manifests/segments.ts";

export interface LiveOptions {
  first: SegmentList;
  reload: () => Promise<SegmentList>;
  /** File that records the listed segments for a later run: the stream's own list forgets them. */
  journalPath: string;
  /** How much of the stream is recorded, seconds. */
  maxLiveS: number;
  signal: AbortSignal;
  /** Aborted when the recording is to end. */
  finish: AbortSignal;
}

/** Limit of reloads in a row without a new segment; then the stream has ended. */
const maxIdleReloads = 10;

/**
 * Yields the segments of a live stream as they appear, those of earlier runs first, until it ends, stops
 * growing, `maxLiveS` seconds are recorded, or `finish` is aborted and it has yielded a segment.
 *
 * @throws ServiceError `live_stream` if `maxLiveS` is 0.
 */
export async function* followLive(options: LiveOptions): AsyncGenerator<Segment> {
  const { first, journalPath, maxLiveS, finish } = options;
  if (maxLiveS === 0) {
    throw new ServiceError(
      "live_stream",
      "the stream is live, and MAX_LIVE_S is 0: live streams are not recorded",
    );
  }
  let last = -1;
  let recordedS = 0;
  let isEmpty = true;
  const isFinished = () => finish.aborted && !isEmpty;
  for (const segment of await readJournal(journalPath)) {
    yield segment;
    isEmpty = false;
    last = segment.sequence;
    // A stream that states no durations must end too.
    recordedS += segment.durationS || first.refreshS;
    if (recordedS >= maxLiveS) return;
  }
  let list = first;
  for (let idleReloads = 0; ;) {
    const added = list.segments.filter(({ sequence }) => sequence > last);
    if (added.length > 0) await appendJournal(journalPath, added);
    for (const segment of added) {
      if (isFinished()) return;
      yield segment;
      isEmpty = false;
      last = segment.sequence;
      recordedS += segment.durationS || list.refreshS;
      if (recordedS >= maxLiveS) return;
    }
    idleReloads = added.length > 0 ? 0 : idleReloads + 1;
    if (list.hasEnded || idleReloads > maxIdleReloads) return;
    const next = await unlessFinished(reloadLater(list, options), isEmpty ? null : finish);
    if (next === undefined) return;
    list = next;
  }
}

/** Waits, and reads the list again; waits no longer once the recording is to end. */
async function reloadLater(
  list: SegmentList,
  { reload, signal, finish }: LiveOptions,
): Promise<SegmentList> {
  const waking = finish.aborted ? signal : AbortSignal.any([signal, finish]);
  await delay(list.refreshS * 1000, undefined, { signal: waking }).catch(() => {
    signal.throwIfAborted();
  });
  return reloadOrNothing(list, reload, signal);
}

/** Returns `result`, or undefined as soon as `finish` is aborted. */
async function unlessFinished<T>(
  result: Promise<T>,
  finish: AbortSignal | null,
): Promise<T | undefined> {
  if (finish === null) return result;
  const { promise: finished, resolve } = Promise.withResolvers<undefined>();
  const onFinish = () => resolve(undefined);
  finish.addEventListener("abort", onFinish, { once: true });
  if (finish.aborted) onFinish();
  try {
    return await Promise.race([result, finished]);
  } finally {
    finish.removeEventListener("abort", onFinish);
  }
}

/** Returns `list` without segments if the server fails: the next reload may succeed. */
async function reloadOrNothing(
  list: SegmentList,
  reload: () => Promise<SegmentList>,
  signal: AbortSignal,
): Promise<SegmentList> {
  try {
    return await reload();
  } catch (error) {
    signal.throwIfAborted();
    const isPassing = error instanceof ServiceError && error.code.startsWith("upstream_");
    if (!isPassing) throw error;
    return { ...list, segments: [] };
  }
}

async function readJournal(path: string): Promise<Segment[]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (isMissing(error)) return "";
    throw error;
  });
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Segment];
    } catch {
      // Empty, or cut off when the process was killed.
      return [];
    }
  });
}

async function appendJournal(path: string, segments: readonly Segment[]): Promise<void> {
  await appendFile(path, segments.map((segment) => `\n${JSON.stringify(segment)}\n`).join(""));
}
