import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { sleep } from "../../async/deadline.ts";
import { unlessMissing } from "../../files/disk-error.ts";
import { noFollow } from "../../files/no-follow.ts";
import type { Segment } from "../../manifests/segments.ts";
import { isUpstreamError } from "../../model/errors.ts";
import { isLiveSource, type Plan, type SegmentSource, sourceDuration } from "./sources/plan.ts";

/** Describes lists whose end may be missing; rejects with `signal.reason`. */
type DescribeEnds = (signal: AbortSignal) => Promise<string[]>;

/** Of lists whose durations are rounded, seconds. */
const roundedS = 1;
/** How long a run waits to see whether a list grows, seconds. */
const maxGrowthS = 15;

/**
 * Finds lists of segments whose end may be missing, once the media are there. Of those whose last segment is fetched, it describes
 * - those that had more in an earlier run: `folder` keeps the longest duration of each;
 * - those without the mark of their end, which a complete list must have (RFC 8216 §6.2.1), unless they are the same when read again.
 *
 * @throws the file system's own errors
 */
export async function openEndCheck({ sources }: Plan, folder: string): Promise<DescribeEnds> {
  const readMs = performance.now();
  const path = join(folder, "listed.json");
  const listedS = await readListed(path);
  const shorter: string[] = [];
  const unstated: { source: SegmentSource; what: string }[] = [];
  for (const source of sources) {
    if (source.kind === "file" || isLiveSource(source)) continue;
    const { name, list, selection } = source;
    const what = name === "main" ? "" : " of the separate audio";
    const nowS = sourceDuration({ ...source, selection: null }) ?? 0;
    const beforeS = listedS.get(name) ?? 0;
    listedS.set(name, Math.max(nowS, beforeS));
    if (selection?.has(list.segments.length - 1) === false) continue;
    if (list.isEndUnstated) unstated.push({ source, what });
    // 0: its durations are unknown.
    if (nowS === 0 || nowS >= beforeS - roundedS) continue;
    const [before, now] = [beforeS.toFixed(1), nowS.toFixed(1)];
    shorter.push(`the list of segments${what} had ${before} s in an earlier run, and has ${now} s`);
  }
  if (listedS.size > 0) await writeFile(path, JSON.stringify([...listedS]), { flag: noFollow.overwrite });
  return async (signal) => {
    const found: string[] = [];
    for (const { source, what } of unstated) {
      if (await isUnchanged(source, readMs, signal)) continue;
      found.push(`the playlist${what} does not state that it is complete (EXT-X-ENDLIST)`);
    }
    return [...found, ...shorter];
  };
}

/** Reads a list again when one that grows has more: 1.5 target durations after it was read (RFC 8216 §6.2.1). */
async function isUnchanged({ list, reload }: SegmentSource, readMs: number, signal: AbortSignal): Promise<boolean> {
  const targetS = list.segments.reduce((longest, { durationS }) => Math.max(longest, durationS), list.refreshS);
  const waitMs = Math.max(0, readMs + 1500 * targetS - performance.now());
  if (waitMs > 1000 * maxGrowthS) return false;
  await sleep(waitMs, signal);
  signal.throwIfAborted();
  try {
    const { segments } = await reload();
    return isDeepStrictEqual(segments.map(lengthOf), list.segments.map(lengthOf));
  } catch (error) {
    signal.throwIfAborted();
    if (!isUpstreamError(error)) throw error;
    return false;
  }
}

const lengthOf = ({ sequence, durationS }: Segment) => [sequence, durationS];

async function readListed(path: string): Promise<Map<string, number>> {
  const text = await unlessMissing(readFile(path, { encoding: "utf8", flag: noFollow.read }));
  try {
    return new Map(JSON.parse(text ?? "[]") as [string, number][]);
  } catch (error) {
    // The process ended while it was written.
    if (error instanceof SyntaxError) return new Map();
    throw error;
  }
}
