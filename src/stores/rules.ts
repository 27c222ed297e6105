import type { BaseLogger } from "pino";
import { ServiceError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { type ClaimQuery, maxDelayMs } from "./store.ts";
import type { Idempotency } from "./store-types.ts";

/** The rules that all stores share, and their errors. */

/** What a claim leaves out. */
export type ClaimExceptions = Omit<Required<ClaimQuery>, "leaseMs">;

/** Tasks that may be queued by default. */
export const defaultMaxQueued = 100_000;

/** The queue shrinks whenever a task is claimed, but many clients may wait. */
const fullRetryAfterS = 30;

/** @throws ServiceError `unavailable` if no further task may be queued. */
export function assertQueueNotFull(queued: number, maxQueued: number): void {
  if (queued < maxQueued) return;
  throw new ServiceError("unavailable", `the queue is full: ${queued} tasks, limit ${maxQueued} (MAX_QUEUED)`, {
    retryAfterS: fullRetryAfterS,
  });
}

/** @param id As the client sent it; the message has its first 100 characters. */
export function taskNotFoundError(id: string): ServiceError {
  return new ServiceError("not_found", `there is no task ${id.slice(0, 100)}`);
}

/** The record of a task is damaged; `reason` completes "it is …". */
export class DamagedTaskError extends ServiceError {
  constructor(id: string, reason: string, cause?: unknown) {
    const message = `the record of task ${id.slice(0, 100)} is damaged: it is ${reason}`;
    super("internal", message, { cause, retryable: false });
  }
}

/** Returns a handler of errors that gives `value` for the record of a task that is damaged, and throws all others. */
export function damagedAs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof DamagedTaskError) return value;
    throw error;
  };
}

/** The disk of the store is, or may be, too full for the change. */
export class StoreDiskFullError extends ServiceError {
  constructor(cause: Error) {
    super("unavailable", `the task store failed: ${cause.message}`, { cause });
  }
}

/** The change gives a task a file, and the files of all tasks would have more bytes than they may. */
export class StorageFullError extends ServiceError {}

/** @param bytes Of the files of all tasks, with the change. */
export function assertStoredBytes(bytes: number, most: number): void {
  if (bytes <= most) return;
  const rule = `the files of all tasks would have ${bytes} bytes, the limit is ${most}`;
  throw new StorageFullError("disk_full", rule);
}

/** Returns the error of a task whose id another one has. */
export function duplicateTaskError(id: string): ServiceError {
  return new ServiceError("conflict", `task ${id} cannot be stored: its id is taken`);
}

/** Returns a copy whose key no other owner has; neither names of owners nor header values have a line break. */
export function ofOwner({ owner }: Task, idempotency: Idempotency | undefined): Idempotency | undefined {
  if (idempotency === undefined || owner === undefined) return idempotency && { ...idempotency };
  return { ...idempotency, key: `${owner}\n${idempotency.key}` };
}

/**
 * Returns the document that was stored earlier under the key; undefined if there was no such use of it.
 *
 * @param idempotency As `ofOwner` returns it.
 * @throws ServiceError `idempotency_mismatch` if the key was used with another fingerprint.
 */
export function earlierDocument(
  use: { fingerprint: string; document: string } | undefined,
  { key, fingerprint }: Idempotency,
): string | undefined {
  if (use === undefined || use.fingerprint === fingerprint) return use?.document;
  const given = key.slice(key.indexOf("\n") + 1);
  throw new ServiceError(
    "idempotency_mismatch",
    `the idempotency key ${JSON.stringify(given)} was used for another request in the last 24 hours`,
  );
}

/**
 * Logs that the tables of an older release are being changed, as nothing is served meanwhile; the returned function logs the end.
 *
 * @param from Steps that were applied to them, of the `to` that there are; 0: there are no tables.
 * @throws Error if a newer release has applied more
 */
export function startUpgrade(from: number, to: number, logger?: Pick<BaseLogger, "info">): () => void {
  if (from > to) throw new Error(`its schema version is ${from}, and this release knows versions up to ${to}`);
  if (from === 0 || from === to) return () => {};
  const sinceMs = performance.now();
  logger?.info({ from, to }, "upgrading the task store; with a million tasks this may take minutes");
  return () => {
    const ms = Math.round(performance.now() - sinceMs);
    logger?.info({ from, to, ms }, "the task store is upgraded");
  };
}

/** Returns how long a task that is queued at `now` waits for `runAfter`, milliseconds. */
export function delayOf(runAfter: Date, now: Date): number {
  return Math.min(Math.max(runAfter.getTime() - now.getTime(), 0), maxDelayMs);
}

/** Returns the error of calls after `close`. */
export function storeClosedError(name: string): ServiceError {
  return new ServiceError("unavailable", `the ${name} task store is closed`);
}
