import { DatabaseError } from "pg";
import { ServiceError } from "../../errors.ts";

/** A database that is away or restarts is mostly back soon. */
const retryAfterS = 5;

/** Failures of the database or of the way to it as the contract's `unavailable`; all others as they are. */
export function toStoreError(error: unknown): unknown {
  if (!isOutage(error)) return error;
  return new ServiceError("unavailable", `the task store failed: ${reasonOf(error)}`, {
    cause: error,
    retryAfterS,
  });
}

/** Whether the same transaction is worth another try at once: it stood in another one's way. */
export function isSerializationFailure(error: unknown): boolean {
  return error instanceof DatabaseError && /^40(001|P01)$/.test(error.code ?? "");
}

/** Whether it is the way to the server that failed: nothing more can be said on that connection. */
export function isConnectionError(error: Error): boolean {
  if (error instanceof DatabaseError) return false;
  if (driverOutage.test(error.message)) return true;
  // Node's own codes (ERR_…) are faults of a program.
  return "code" in error && /^E(?!RR_)[A-Z_]+$/.test(String(error.code));
}

/** Whether a connection was lost, whichever side tells it: the server that ends or begins, or the driver. */
export function isConnectionLost(error: Error): boolean {
  if (error instanceof DatabaseError) return /^(08|57P0)/.test(error.code ?? "");
  return isConnectionError(error);
}

/** Whether the statement would have had to wait for a row. */
export function isLockNotAvailable(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "55P03";
}

/** What happened, without any setting of the connection. */
export function reasonOf(error: Error): string {
  // Of several addresses that were tried, each has its own error.
  return error instanceof AggregateError ? String(Reflect.get(error, "code")) : error.message;
}

/**
 * By class of SQLSTATE: connection, authorization, database, clashes, resources, limits, operators,
 * the system's own errors and the server's; one by one: a server that takes no writes (25006) or has
 * ended an idle transaction (25P03).
 */
const outageStates = /^(08|28|3D|40|53|55|57|58|XX|25006$|25P03$)/;

/** What the driver throws itself bears no code. */
const driverOutage =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Cannot use a pool after calling end|Client (was closed|has encountered a connection error)|The server does not support SSL)/i;

function isOutage(error: unknown): error is Error {
  if (error instanceof DatabaseError) return outageStates.test(error.code ?? "");
  return error instanceof Error && isConnectionError(error);
}
