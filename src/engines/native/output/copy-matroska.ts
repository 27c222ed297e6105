import { ftruncateSync } from "node:fs";
import { open } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { InputTrack } from "mediabunny";
import { isUpstreamError } from "../../../model/errors.ts";
import type { Additions } from "../../../remux/additions.ts";
import { openFile } from "../../../remux/open-file.ts";
import {
  type ChosenTracks,
  keptElements,
  readDocType,
  selectAll,
  copyMatroska,
  type CopyTarget,
  hasPadding,
  isCopiable,
  selectTracks,
} from "../../../remux/matroska/copy.ts";
import type { TrackDetails } from "../../../remux/track-details.ts";
import type { LocalInput } from "../inspect/local-input.ts";

/** Returns the chosen tracks of each file that is WebM or Matroska and not damaged at its start. */
export function matroskaSources(files: readonly LocalInput[], chosen: readonly InputTrack[]): ChosenTracks[] {
  return files.flatMap((file) => {
    const numbers = chosen.filter(({ input }) => input === file.input).map(({ id }) => id);
    try {
      const selected = numbers.length === 0 ? undefined : selectTracks(file.fd, numbers);
      return selected === undefined ? [] : [selected];
    } catch (error) {
      // mediabunny finds more in a damaged file.
      if (isUpstreamError(error)) return [];
      throw error;
    }
  });
}

/** A longer delay is none: that of Opus is 80 ms at most. */
const maxDelayNs = 1e9;

/** Returns what the tracks say that no MP4 of mediabunny does. */
export function detailsOf({ tracks }: ChosenTracks): TrackDetails[] {
  return tracks.flatMap(({ kind, language, name, codecDelayNs }) => {
    const isDelayed = kind === "audio" && codecDelayNs < maxDelayNs;
    return kind === null ? [] : [{ kind, language, name, delayS: isDelayed ? codecDelayNs / 1e9 : 0 }];
  });
}

/**
 * Copies the tracks into a WebM or Matroska file if they are in such files and the copy says more than an MP4. Returns
 * whether it has done so: not with a damaged file.
 */
export async function copyElements(
  sources: readonly ChosenTracks[],
  chosen: readonly InputTrack[],
  { isWebm, signal, ...target }: Omit<CopyTarget, "docType"> & { isWebm: boolean; signal: AbortSignal },
): Promise<boolean> {
  const found = sources.flatMap(({ tracks }) => tracks);
  if (found.length < chosen.length || !isCopiable(sources)) return false;
  try {
    const isPadded = () => found.every(({ kind }) => kind === "audio") && sources.some(hasPadding);
    if (!isWebm && !isPadded()) return false;
    await copyAll(sources, { ...target, docType: isWebm ? "webm" : "matroska" }, signal);
    return true;
  } catch (error) {
    if (!isUpstreamError(error)) throw error;
    ftruncateSync(target.fd);
    return false;
  }
}

/**
 * Copies all tracks, attachments and tags of a WebM or Matroska file, with additions. Returns false if it is damaged: then it
 * cannot be copied whole.
 */
export async function addToMatroska(
  path: string,
  target: string,
  additions: Additions,
  signal: AbortSignal,
): Promise<boolean> {
  using file = openFile(path);
  await using copy = await open(target, "w");
  try {
    const source = selectAll(file.fd);
    if (source === undefined || !isCopiable([source])) return false;
    const docType = readDocType(source);
    await copyAll([source], { fd: copy.fd, docType, additions, kept: keptElements(source, additions) }, signal);
    return true;
  } catch (error) {
    if (isUpstreamError(error)) return false;
    throw error;
  }
}

/** Copies a file that this program has written. @throws ServiceError as `copyMatroska` */
export async function copyWritten(path: string, target: CopyTarget, signal: AbortSignal): Promise<void> {
  using file = openFile(path);
  await copyAll([selectAll(file.fd)!], target, signal);
}

async function copyAll(sources: readonly ChosenTracks[], target: CopyTarget, signal: AbortSignal): Promise<void> {
  for (const _ of copyMatroska(sources, target)) {
    signal.throwIfAborted();
    await nextTurn();
  }
}
