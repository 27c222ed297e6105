import { appendFile, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { isMissing } from "../../files/disk-error.ts";
import { ServiceError } from "../../errors.ts";
import type { Segment, SegmentList } from "../../manifests/segments.ts";

export interface LiveOptions {
  first: SegmentList;
  reload: () => Promise<SegmentList>;
  /** Keeps the segments that were seen, for a later run: the stream's own list forgets them. */
  memory: string;
  /** How much is recorded. */
  maxLiveS: number;
  signal: AbortSignal;
}

/** A stream that shows nothing new for so many of its own intervals is over. */
const maxSilentReloads = 10;

/**
 * The segments of a stream as they appear, those of earlier runs first, until it ends, stops growing or
 * `maxLiveS` seconds are there.
 *
 * @throws ServiceError `live_stream` where `maxLiveS` is 0.
 */
export async function* followLive(options: LiveOptions): AsyncGenerator<Segment> {
  const { reload, memory, maxLiveS, signal } = options;
  if (maxLiveS === 0) {
    throw new ServiceError(
      "live_stream",
      "the stream is live, and MAX_LIVE_S is 0: none is recorded",
    );
  }
  const known = await recall(memory);
  let last = -1;
  let recordedS = 0;
  let list: SegmentList = { ...options.first, segments: known };
  let upcoming: SegmentList | undefined = options.first;
  for (let silent = 0; ;) {
    const fresh = list.segments.filter(({ sequence }) => sequence > last);
    if (list.segments !== known && fresh.length > 0) await remember(memory, fresh);
    for (const segment of fresh) {
      yield segment;
      // An endless stream that states no lengths must end as well.
      recordedS += segment.durationS || list.refreshS;
      last = segment.sequence;
      if (recordedS >= maxLiveS) return;
    }
    if (upcoming === undefined) {
      silent = fresh.length > 0 ? 0 : silent + 1;
      if (list.hasEnded || silent > maxSilentReloads) return;
      await wait(list.refreshS * 1000, undefined, { signal });
      upcoming = await reloadOr(list, reload, signal);
    }
    list = upcoming;
    upcoming = undefined;
  }
}

/** A list that cannot be had now may be had the next time; until then nothing is new. */
async function reloadOr(
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

async function recall(path: string): Promise<Segment[]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (isMissing(error)) return "";
    throw error;
  });
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Segment];
    } catch {
      // Empty, or cut short when the process was killed.
      return [];
    }
  });
}

async function remember(path: string, segments: readonly Segment[]): Promise<void> {
  await appendFile(path, segments.map((segment) => `\n${JSON.stringify(segment)}\n`).join(""));
}
