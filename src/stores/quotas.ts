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
}

/** What counts of a task; undefined: there is none. */
export type Counted = Pick<StoredTask, "state" | "bytes"> | undefined;

/** `Retry-After` of a full queue, seconds. */
const retryAfterS = 30;

/** No use, and no change of it: compared with by identity. */
export const noUse: OwnerUse = Object.freeze({ queued: 0, running: 0, bytes: 0 });

/** Returns how the use of an owner changes when one of its tasks does; `noUse` if it does not. */
export function useChange(before: Counted, after: Counted): OwnerUse {
  const queued = Number(after?.state === "queued") - Number(before?.state === "queued");
  const running = Number(after?.state === "running") - Number(before?.state === "running");
  const bytes = (after?.bytes ?? 0) - (before?.bytes ?? 0);
  return queued === 0 && running === 0 && bytes === 0 ? noUse : { queued, running, bytes };
}

/** Returns what an owner uses after a change. */
export function addUse(use: OwnerUse, change: OwnerUse): OwnerUse {
  return {
    queued: use.queued + change.queued,
    running: use.running + change.running,
    bytes: use.bytes + change.bytes,
  };
}

/**
 * Checks a change that a limit may forbid: a task that a client queues, and a file. Requeuing a running task and claiming
 * one are never refused.
 *
 * @param use With the change.
 * @throws ServiceError `quota_exceeded`
 */
export function assertQuota(limits: KeyLimits, use: OwnerUse, before: Counted, after: Counted): void {
  const { queued, bytes } = useChange(before, after);
  if (queued > 0 && before?.state !== "running") assertMayQueue(limits, { ...use, queued: use.queued - queued });
  const { max_bytes: most = Infinity } = limits;
  if (bytes > 0 && use.bytes > most) throw bytesError(use.bytes, most);
}

/** Returns how many more bytes the files of an owner that uses so much may have; undefined: any number. */
export function bytesLeft({ max_bytes: most }: KeyLimits, { bytes }: OwnerUse): number | undefined {
  return most === undefined ? undefined : Math.max(0, most - bytes);
}

/** @throws ServiceError `quota_exceeded` if a client may not queue a task of an owner that uses so much. */
export function assertMayQueue(limits: KeyLimits, { queued, bytes }: OwnerUse): void {
  const { max_queued: mostQueued = Infinity, max_bytes: mostBytes = Infinity } = limits;
  if (bytes >= mostBytes) throw bytesError(bytes, mostBytes);
  if (queued < mostQueued) return;
  const rule = `${queued} tasks of this key wait, its limit is ${mostQueued}`;
  throw new ServiceError("quota_exceeded", rule, { retryAfterS });
}

/** Time does not help: a file must be deleted. */
function bytesError(bytes: number, most: number): ServiceError {
  const rule = `the files of this key need ${bytes} bytes, its limit is ${most}`;
  return new ServiceError("quota_exceeded", rule, { retryable: false });
}
