import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { unlessMissing } from "./disk-error.ts";
import { noFollow } from "./no-follow.ts";

/** A file in a work folder that says that a client wants the stream. A run makes no other one. */
const requestName = "stream.request";

/** Requests the stream of the run in this folder; does nothing if there is none. @throws the file system's own errors */
export async function requestStream(folder: string): Promise<void> {
  const file = await unlessMissing(open(join(folder, requestName), noFollow.append));
  await file?.close();
}

/**
 * Returns at which step of a run the stream was first requested; undefined: it was not. The run that finds the request notes its own
 * step in it, so that later ones make the same fragments.
 *
 * @throws the file system's own errors
 */
export function findRequest(folder: string, step: number): number | undefined {
  const path = join(folder, requestName);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  const known = readFileSync(path, { encoding: "utf8", flag: noFollow.read });
  if (known !== "") return Number(known);
  const fd = openSync(path, noFollow.update);
  try {
    writeSync(fd, `${step}`, 0);
  } finally {
    closeSync(fd);
  }
  return step;
}
