import { ServiceError, systemErrorCode } from "../model/errors.ts";

/**
 * Converts a file system error to a ServiceError: `disk_full` for ENOSPC, EDQUOT and EFBIG, as a later attempt would fail too, else
 * `unavailable`.
 * Returns any other error as it is. If closing a file failed after another failure, that one counts.
 *
 * @param tried Completes "cannot …", e.g. "open the file of task 42"; clients see it, so it has no path of this machine.
 */
export function diskError(tried: string, error: unknown): unknown {
  if (error instanceof SuppressedError) return diskError(tried, error.suppressed);
  const code = systemErrorCode(error);
  // Node's own codes (ERR_…) are defects of this program.
  if (code === undefined || !/^E[A-Z0-9]+$/.test(code)) return error;
  const isFull = noSpaceCodes.has(code);
  const reason = reasons.get(code);
  const message = `cannot ${tried}: ${reason === undefined ? `file system error ${code}` : `${reason} (${code})`}`;
  return new ServiceError(isFull ? "disk_full" : "unavailable", message, { cause: error });
}

/** What the codes of the system mean, for people. */
const reasons: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "no space is left on the disk"],
  ["EDQUOT", "the disk quota is used up"],
  ["EFBIG", "the file system allows no file of that size"],
  ["EACCES", "permission is denied"],
  ["EPERM", "the file system does not permit it"],
  ["EROFS", "the file system is read-only"],
  ["ENOENT", "a file or folder is missing"],
  ["ENOTDIR", "a file is in the place of a folder"],
  ["EISDIR", "a folder is in the place of a file"],
  ["ELOOP", "a symbolic link is in its place"],
  ["ENAMETOOLONG", "the name is too long for the file system"],
  ["EIO", "the disk reports an error"],
  ["EMFILE", "the process has too many files open"],
  ["ENFILE", "the system has too many files open"],
]);

/** EFBIG: the file system, such as FAT32, or a limit of the process allows no larger file. */
const noSpaceCodes: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Returns what `work` resolves to; rejects with what `diskError` returns of an error. */
export async function withDiskError<T>(tried: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw diskError(tried, error);
  }
}

/** Returns whether the error is ENOENT: no such file or folder. */
export function isMissing(error: unknown): boolean {
  return systemErrorCode(error) === "ENOENT";
}

/** Returns what `found` resolves to; undefined if it rejects because there is no such file or folder. */
export async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Returns whether the error is EEXIST: something has the name. */
export function isTaken(error: unknown): boolean {
  return systemErrorCode(error) === "EEXIST";
}

/** Whether the file system, or another one that is mounted, cannot do what it was asked for. */
export function isUnsupported(error: unknown): boolean {
  return ["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"].includes(systemErrorCode(error) ?? "");
}
