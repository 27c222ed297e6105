import type { KeyLimits } from "../model/access-key.ts";
import { ServiceError } from "../model/errors.ts";
import type { StoredTask } from "./documents.ts";

/** What the tasks of one owner use of the limits of its key. */
export interface OwnerUse {
  queued: number;
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

/** An owner that has a key. */
export interface Quota {
  /** Of the key. */
  limits: KeyLimits;
  use: OwnerUse;
}

/**
 * Checks a change that a limit may forbid: a task that a client queues, a file, and what a run learns of its page.
 * Requeuing a running task and claiming one are never refused.
 *
 * @param quota With the change.
 * @param free Free places of the queue, without the change.
 * @throws ServiceError `quota_exceeded`
 */
export function assertQuota({ limits, use }: Quota, free: number, before: Counted, after: Counted): void {
  const { queued, bytes, records } = useChange(before, after);
  const isQueued = queued > 0 && before?.state !== "running";
  if (isQueued) assertMayQueue({ limits, use: { ...use, queued: use.queued - queued } }, free);
  const { max_bytes: most = Infinity } = limits;
  const isLearning = before?.state === "running" && after?.state === "running" && records > freeGrowthBytes;
  if ((bytes > 0 || isLearning) && bytesOf(use) > most) throw bytesError(use, most);
}

function bytesOf({ bytes, records }: OwnerUse): number {
  return bytes + records;
}

/** Returns how many more bytes the files of an owner may have; undefined: any number. */
export function bytesLeft({ limits: { max_bytes: most }, use }: Quota): number | undefined {
  return most === undefined ? undefined : Math.max(0, most - bytesOf(use));
}

/** Tasks of one owner that may wait for each place of the queue that is free. */
const queuedPerFree = 9;

/**
 * Returns how many more tasks of an owner may be queued. One is queued while the owner has fewer than nine for each free place of the
 * queue: so it takes nine tenths of what others leave.
 */
export function freeInQueue({ limits, use }: Quota, free: number): number {
  const { max_queued: most = Infinity, max_bytes: mostBytes = Infinity } = limits;
  if (bytesOf(use) >= mostBytes) return 0;
  const share = Math.ceil((queuedPerFree * free - use.queued) / (queuedPerFree + 1));
  return Math.max(0, Math.min(most - use.queued, share));
}

/** @throws ServiceError `quota_exceeded` if a client may not queue a task of the owner. */
export function assertMayQueue({ limits, use }: Quota, free: number): void {
  const { max_queued: mostQueued = Infinity, max_bytes: mostBytes = Infinity } = limits;
  if (bytesOf(use) >= mostBytes) throw bytesError(use, mostBytes);
  if (freeInQueue({ limits, use }, free) > 0) return;
  const { queued } = use;
  const rule = `${queued} tasks of this key wait, its limit is ${Math.min(mostQueued, queued)}`;
  throw new ServiceError("quota_exceeded", rule, { retryAfterS });
}

/** Time does not help: a task or its file must be deleted. */
function bytesError(use: OwnerUse, most: number): ServiceError {
  const what = use.records > 0 ? "files and records" : "files";
  const rule = `the ${what} of this key need ${bytesOf(use)} bytes, its limit is ${most}`;
  return new ServiceError("quota_exceeded", rule, { retryable: false });
}
