import { DatabaseError } from "pg";
import { ServiceError } from "../../model/errors.ts";
import { StoreDiskFullError } from "../rules.ts";

/** SQLSTATE `disk_full`. */
const diskFull = "53100";

/** Turns errors of the database and of the connection to it into `unavailable`; returns others unchanged. */
export function toStoreError(error: unknown): unknown {
  if (!isOutage(error)) return error;
  if (error instanceof DatabaseError && error.code === diskFull) return new StoreDiskFullError(error);
  return new ServiceError("unavailable", `the task store failed: ${reasonOf(error)}`, {
    cause: error,
  });
}

/** Whether the transaction conflicted with another one and can be retried at once. */
export function isSerializationFailure(error: unknown): boolean {
  return error instanceof DatabaseError && /^40(001|P01)$/.test(error.code ?? "");
}

/** Whether an earlier statement of the transaction has failed, and this one was not run. */
export function isAfterFailure(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "25P02";
}

/** Whether the connection itself failed, so that it cannot be used again. */
export function isConnectionError(error: Error): boolean {
  if (error instanceof DatabaseError) return false;
  if (driverOutage.test(error.message)) return true;
  // System errors (ECONNRESET); Node's own codes (ERR_…) are programming errors.
  return "code" in error && /^E(?!RR_)[A-Z_]+$/.test(String(error.code));
}

/** Whether a connection was lost, as reported by the driver or by a server that stops or starts. */
export function isConnectionLost(error: Error): boolean {
  if (error instanceof DatabaseError) return /^(08|57P0)/.test(error.code ?? "");
  return isConnectionError(error);
}

/** Whether a statement with NOWAIT found its row locked. */
export function isLockNotAvailable(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "55P03";
}

/** Returns the message, without any setting of the connection: clients read it, with or without a key. */
export function reasonOf(error: Error): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  // If a host has several addresses, each has its own error and the message is empty.
  if (error instanceof AggregateError) return String(code);
  // The message of a system error names the host.
  if (syscall !== undefined) return `${syscall} ${code}`;
  return lostConnection.test(error.message)
    ? `the connection to the database was lost (${error.message})`
    : error.message;
}

/** The driver's words for it. */
const lostConnection = /^(Connection terminated|Client (was closed|has encountered a connection error))/i;

/**
 * SQLSTATE classes: connection (08), authorization (28), catalog name (3D), transaction rollback (40),
 * resources (53), object state (55), operator intervention (57), system (58) and internal errors (XX). Single
 * codes: a read-only server (25006), an idle transaction that the server has ended (25P03).
 */
const outageStates = /^(08|28|3D|40|53|55|57|58|XX|25006$|25P03$)/;

/** The driver's own errors have no code. */
const driverOutage =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Cannot use a pool after calling end|Client (was closed|has encountered a connection error)|The server does not support SSL)/i;

function isOutage(error: unknown): error is Error {
  if (error instanceof DatabaseError) return outageStates.test(error.code ?? "");
  return error instanceof Error && isConnectionError(error);
}
