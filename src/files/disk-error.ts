import { ServiceError } from "../errors.ts";

/**
 * A failed call of the file system as ServiceError: `disk_full` where there is no room (ENOSPC, EDQUOT),
 * else `unavailable`. What is no such failure is left as it is.
 *
 * @param tried As in "cannot …", with the path.
 */
export function diskError(tried: string, error: unknown): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // Node's own codes (ERR_…) are faults of a program.
  if (!/^E[A-Z0-9]+$/.test(code)) return error;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const message = `cannot ${tried}: file system error ${code}`;
  return new ServiceError(isFull ? "disk_full" : "unavailable", message, { cause: error });
}

/** Whether the file system says that there is no such file or folder. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
