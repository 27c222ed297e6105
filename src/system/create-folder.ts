import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Creates the folder and its missing parents. `mkdir` with `recursive` never returns for a path such as `/proc/x`: that
 * fails with ENOENT although the parent exists, and Node tries again.
 *
 * @throws Error of the file system that names the path; also if it is a file.
 */
export function createFolder(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) createFolder(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have created it.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
