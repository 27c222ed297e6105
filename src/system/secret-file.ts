import { randomBytes } from "node:crypto";
import { linkSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

const secretBytes = 32;

/**
 * Returns the random bytes in the file at `path`; creates it, for its owner alone, if it does not exist. Processes that do so at the
 * same time get the same bytes.
 *
 * @throws Error if it is no file of that length; the file system's own errors
 */
export function openSecretFile(path: string): Buffer {
  const known = readSecret(path);
  if (known !== undefined) return known;
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  writeFileSync(draft, randomBytes(secretBytes), { flag: "wx", mode: 0o600, flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Else another process was faster. Not every file system has links.
    if (code !== "EEXIST") renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  return readSecret(path)!;
}

function readSecret(path: string): Buffer | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isFile() && found.size === secretBytes) return readFileSync(path);
  // Of a pipe or a device, reading might never end.
  const actual = found.isFile() ? `it has ${found.size}` : "it is no regular file";
  throw new Error(`${path} must be a file of ${secretBytes} bytes, ${actual}; remove it to get new ones`);
}
