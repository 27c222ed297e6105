import { WindowSums } from "../async/window-sums.ts";
import type { KeyLimits } from "../model/access-key.ts";
import { ServiceError } from "../model/errors.ts";
import { hasEnded, type State } from "../model/task.ts";
import type { StoredTask } from "./documents.ts";
import { idempotencyTtlMs } from "./store-types.ts";

/** What the tasks of one owner use of the limits of its key. */
export interface OwnerUse {
  queued: number;
  running: number;
  /** Bytes of their files. */
  bytes: number;
  /** Bytes of their records; of a task that has not ended, only what is over `freeRecordBytes`. */
  records: number;
}

/** What counts of a task; undefined: there is none. */
export type Counted =
  | (Pick<StoredTask, "state" | "bytes" | "document"> & Partial<Pick<StoredTask, "idle">>)
  | undefined;

/** Of a task that waits or runs only a record that says much of a page counts: how many these are is limited, and they change often. */
const freeRecordBytes = 16_000;

/** Bytes of all its records that an owner has besides its `max_bytes`. */
const freeRecordsBytes = 250_000;

/** Bytes of all its records that an owner may have without a `max_bytes`: so that none fills the disk of the store unnoticed. */
const mostRecordsBytes = 10_000_000_000;

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

/** An idle collection takes no place. */
function isRunning(counted: Counted): boolean {
  return counted?.state === "running" && counted.idle !== 1;
}

function recordBytes(counted: Counted): number {
  if (counted === undefined) return 0;
  const { state, document } = counted;
  // No character takes more than three bytes.
  if (!hasEnded(state) && document.length * 3 <= freeRecordBytes) return 0;
  return countedLength(state, Buffer.byteLength(document));
}

/** Returns how many bytes of a record that has this many count. */
export function countedLength(state: State, bytes: number): number {
  return hasEnded(state) ? bytes : Math.max(0, bytes - freeRecordBytes);
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
  // With its end the record of a task counts more, for which no file that fits is refused.
  const counted = isLearning ? use : { ...use, records: use.records - records };
  if ((bytes > 0 || isLearning) && bytesOf(counted) > most) throw bytesError(counted, most);
}

function bytesOf({ bytes, records }: OwnerUse): number {
  return bytes + Math.max(0, records - freeRecordsBytes);
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
  const { max_queued: most = Infinity } = limits;
  if (fullError({ limits, use }) !== undefined) return 0;
  const share = Math.ceil((queuedPerFree * free - use.queued) / (queuedPerFree + 1));
  return Math.max(0, Math.min(most - use.queued, share));
}

/** @throws ServiceError `quota_exceeded` if a client may not queue a task of the owner. */
export function assertMayQueue({ limits, use }: Quota, free: number): void {
  const { max_queued: mostQueued = Infinity } = limits;
  const full = fullError({ limits, use });
  if (full !== undefined) throw full;
  if (freeInQueue({ limits, use }, free) > 0) return;
  const { queued } = use;
  const rule = `${queued} tasks of this key wait, its limit is ${Math.min(mostQueued, queued)}`;
  throw new ServiceError("quota_exceeded", rule, { retryAfterS });
}

/** Returns the error of an owner that has no byte left for another task. */
function fullError({ limits: { max_bytes: most }, use }: Quota): ServiceError | undefined {
  if (most !== undefined) return bytesOf(use) < most ? undefined : bytesError(use, most);
  if (use.records < mostRecordsBytes) return undefined;
  const rule = `the records of this key's tasks need ${use.records} bytes, the limit of a key without max_bytes is ${mostRecordsBytes}`;
  return new ServiceError("quota_exceeded", rule, { retryable: false });
}

/** Time does not help: a task or its file must be deleted. */
function bytesError(use: OwnerUse, most: number): ServiceError {
  const what = use.records > freeRecordsBytes ? "files and records" : "files";
  const rule = `the ${what} of this key need ${bytesOf(use)} bytes, its limit is ${most}`;
  return new ServiceError("quota_exceeded", rule, { retryable: false });
}

/** SQL of what `OwnerUse.records` counts of a row of tasks. */
export const countedRecord = `(CASE WHEN state IN ('queued', 'running')
  THEN greatest(octet_length(document) - ${freeRecordBytes}, 0) ELSE octet_length(document) END)`;

/** Bytes that the responses of an owner may have which are kept under idempotency keys in a day. */
const maxKeptBytes = 250_000_000;

/**
 * Counts what a process keeps under the idempotency keys of each owner in 24 hours: one owner must not fill the disk. Tasks without an owner are not
 * counted, as they have no limits.
 */
export class KeyAllowance {
  readonly #maxBytes: number;
  readonly #kept = new WindowSums(idempotencyTtlMs);

  constructor(maxBytes = maxKeptBytes) {
    this.#maxBytes = maxBytes;
  }

  /** @throws ServiceError `quota_exceeded` if no further response may be kept now */
  assertMayKeep(owner: string | undefined, nowMs: number): void {
    const { sum: bytes, endsMs } = this.#kept.get(owner ?? "", nowMs);
    if (bytes < this.#maxBytes) return;
    const rule = `what is kept under the idempotency keys of this key has ${bytes} bytes, the limit is ${this.#maxBytes} in 24 hours`;
    throw new ServiceError("quota_exceeded", rule, { retryAfterS: Math.ceil((endsMs - nowMs) / 1_000) });
  }

  /** Counts a response that is kept. */
  add(owner: string | undefined, answer: string, nowMs: number): void {
    if (owner !== undefined) this.#kept.add(owner, Buffer.byteLength(answer), nowMs);
  }
}
