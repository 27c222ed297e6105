import type { KeyLimits } from "../model/access-key.ts";
import { ServiceError } from "../model/errors.ts";
import type { StoredTask } from "./documents.ts";

/** What the tasks of one owner use of the limits of its key. */
export interface OwnerUse {
  /** Tasks that are queued. */
  queued: number;
  /** Tasks that are running. */
  running: number;
  /** Bytes of their files. */
  bytes: number;
  /** Bytes of their records, of each what is over `freeRecordBytes`. */
  records: number;
}

/** What counts of a task; undefined: there is none. */
export type Counted =
  | (Pick<StoredTask, "state" | "bytes" | "document"> & Partial<Pick<StoredTask, "idle">>)
  | undefined;

/** So that only records that say much of a page count. */
export const freeRecordBytes = 16_000;

/** A run may add so much to its record, such as its progress, although the limit is reached. */
const freeGrowthBytes = 1_000;

/** `Retry-After` of a full queue, seconds. */
const retryAfterS = 30;

/** No use, and no change of it: compared with by identity. */
export const noUse: OwnerUse = Object.freeze({ queued: 0, running: 0, bytes: 0, records: 0 });

/** Returns how the use of an owner changes when one of its tasks does; `noUse` if it does not. */
export function useChange(before: Counted, after: Counted): OwnerUse {
  const queued = Number(after?.state === "queued") - Number(before?.state === "queued");
  const running = Number(isRunning(after)) - Number(isRunning(before));
  const bytes = (after?.bytes ?? 0) - (before?.bytes ?? 0);
  const records = recordBytes(after) - recordBytes(before);
  const isSame = queued === 0 && running === 0 && bytes === 0 && records === 0;
  return isSame ? noUse : { queued, running, bytes, records };
}

/** An idle collection takes nobody's place. */
function isRunning(counted: Counted): boolean {
  return counted?.state === "running" && counted.idle !== 1;
}

function recordBytes(counted: Counted): number {
  // No character takes more than three bytes.
  if (counted === undefined || counted.document.length * 3 <= freeRecordBytes) return 0;
  return Math.max(0, Buffer.byteLength(counted.document) - freeRecordBytes);
}

/** Returns what an owner uses after a change. */
export function addUse(use: OwnerUse, change: OwnerUse): OwnerUse {
  return {
    queued: use.queued + change.queued,
    running: use.running + change.running,
    bytes: use.bytes + change.bytes,
    records: use.records + change.records,
  };
}

/**
 * Checks a change that a limit may forbid: a task that a client queues, a file, and what a run learns of its page.
 * Requeuing a running task and claiming one are never refused.
 *
 * @param use With the change.
 * @throws ServiceError `quota_exceeded`
 */
export function assertQuota(limits: KeyLimits, use: OwnerUse, before: Counted, after: Counted): void {
  const { queued, bytes, records } = useChange(before, after);
  if (queued > 0 && before?.state !== "running") assertMayQueue(limits, { ...use, queued: use.queued - queued });
  const { max_bytes: most = Infinity } = limits;
  const isLearning = before?.state === "running" && after?.state === "running" && records > freeGrowthBytes;
  if ((bytes > 0 || isLearning) && bytesOf(use) > most) throw bytesError(use, most);
}

function bytesOf({ bytes, records }: OwnerUse): number {
  return bytes + records;
}

/** Returns how many more bytes the files of an owner that uses so much may have; undefined: any number. */
export function bytesLeft({ max_bytes: most }: KeyLimits, use: OwnerUse): number | undefined {
  return most === undefined ? undefined : Math.max(0, most - bytesOf(use));
}

/** Returns how many tasks of one owner may be queued: a tenth of the queue, rounded down, is left to others. */
export function queueShare(maxQueued: number): number {
  return maxQueued - Math.floor(maxQueued / 10);
}

/** Returns the limits of a key, with its share of a queue of that size. */
export function withQueueShare(limits: KeyLimits, maxQueued: number): KeyLimits {
  return { ...limits, max_queued: Math.min(limits.max_queued ?? Infinity, queueShare(maxQueued)) };
}

/** Returns how many more tasks of an owner that uses so much may be queued; Infinity: any number. */
export function queueRoom({ max_queued: most = Infinity, max_bytes = Infinity }: KeyLimits, use: OwnerUse): number {
  return bytesOf(use) >= max_bytes ? 0 : Math.max(0, most - use.queued);
}

/** @throws ServiceError `quota_exceeded` if a client may not queue a task of an owner that uses so much. */
export function assertMayQueue(limits: KeyLimits, use: OwnerUse): void {
  const { queued } = use;
  const { max_queued: mostQueued = Infinity, max_bytes: mostBytes = Infinity } = limits;
  if (bytesOf(use) >= mostBytes) throw bytesError(use, mostBytes);
  if (queued < mostQueued) return;
  const rule = `${queued} tasks of this key wait, its limit is ${mostQueued}`;
  throw new ServiceError("quota_exceeded", rule, { retryAfterS });
}

/** Time does not help: a task or its file must be deleted. */
function bytesError(use: OwnerUse, most: number): ServiceError {
  const what = use.records > 0 ? "files and records" : "files";
  const rule = `the ${what} of this key need ${bytesOf(use)} bytes, its limit is ${most}`;
  return new ServiceError("quota_exceeded", rule, { retryable: false });
}
