import { constants, type Stats } from "node:fs";
import { basename } from "node:path";
import { ServiceError } from "../model/errors.ts";

/** Windows has neither O_NOFOLLOW nor O_NONBLOCK: undefined, which adds no flag. */
const { O_RDONLY, O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;

const safely = O_NOFOLLOW | O_NONBLOCK;

/**
 * Flags of `open` that refuse a symbolic link (ELOOP) and do not wait for the other end of a pipe: to write to one that nobody reads is
 * refused, too (ENXIO). The names are those of the flags that they replace: `r`, `r+`, `w` and `a`.
 */
export const noFollow = {
  read: O_RDONLY | safely,
  update: O_RDWR | safely,
  overwrite: O_WRONLY | O_CREAT | O_TRUNC | safely,
  append: O_WRONLY | O_CREAT | O_APPEND | safely,
} as const;

/**
 * Checks what `lstat` has found at `path`. The message has only its last name, as clients see it.
 *
 * @throws ServiceError `unavailable` if it is a symbolic link, or anything else than `kind`.
 */
export function assertKind(path: string, found: Stats, kind: "file" | "folder"): void {
  if (kind === "file" ? found.isFile() : found.isDirectory()) return;
  const other = found.isSymbolicLink() ? "a symbolic link" : "none";
  throw new ServiceError("unavailable", `${basename(path)} must be a ${kind}, and is ${other}`);
}
