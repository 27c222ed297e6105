import { fstatSync, ftruncateSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import type { InputTrack, MediaCodec } from "mediabunny";
import { unlessUnreadable, upstreamAs } from "../../../model/errors.ts";
import { type Additions, noAdditions } from "../../../remux/additions.ts";
import { openFile } from "../../../remux/open-file.ts";
import {
  type ChosenTracks,
  readDocType,
  readEnds,
  selectAll,
  selectTracks,
  type TrackEnd,
} from "../../../remux/matroska/blocks.ts";
import { keptElements } from "../../../remux/matroska/added-elements.ts";
import { copyMatroska, type CopyTarget, isCopiable } from "../../../remux/matroska/copy.ts";
import { webmCodecIds } from "../../../remux/matroska/tracks.ts";
import { hasLacedVorbis } from "../../../remux/matroska/vorbis.ts";
import { runSteps } from "../../../remux/steps.ts";
import type { TrackDetails } from "../../../remux/track-details.ts";
import { readMp3Details } from "../../../remux/packed-audio/mp3-table.ts";
import { type LocalInput, mediabunny, openLocalInput } from "../inspect/local-input.ts";
import { readOggPadding } from "../inspect/ogg.ts";

/** Returns the chosen tracks of each file that is WebM or Matroska and not damaged at its start. */
export function matroskaSources(files: readonly LocalInput[], chosen: readonly InputTrack[]): ChosenTracks[] {
  return files.flatMap((file) => {
    const numbers = chosen.filter(({ input }) => input === file.input).map(({ id }) => id);
    if (numbers.length === 0) return [];
    // mediabunny finds more in a damaged file.
    return unlessUnreadable(() => selectTracks(file.fd, numbers)) ?? [];
  });
}

/** A longer delay or padding is ignored: a packet of Opus has 120 ms at most. */
const maxTrimmedNs = 1e9;

/** Returns what the chosen tracks say that no MP4 of mediabunny does, those of a kind in their order. */
export async function detailsOf(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  sources: readonly ChosenTracks[],
): Promise<TrackDetails[]> {
  const found: TrackDetails[] = [];
  for (const file of files) {
    const source = sources.find(({ fd }) => fd === file.fd);
    const own = chosen.filter(({ input }) => input === file.input);
    if (source !== undefined) found.push(...detailsIn(source));
    else for (const track of own) found.push(await trimsOf(file, track));
  }
  return found;
}

const noDetails = { language: null, name: "", delayS: 0, paddingS: 0, timedPaddingS: 0 };

/** Returns what an MP3 or Ogg file says of the start and the end of its audio. */
async function trimsOf({ input, fd }: LocalInput, track: InputTrack): Promise<TrackDetails> {
  if (!track.isAudioTrack()) return { kind: "video", ...noDetails };
  const { name } = await input.getFormat();
  const details = name === "MP3" ? readMp3Details({ fd, size: fstatSync(fd).size }) : undefined;
  const paddingS = name === "Ogg" ? await readOggPadding(track) : 0;
  return details ?? { kind: "audio", ...noDetails, paddingS };
}

function detailsIn(file: ChosenTracks): TrackDetails[] {
  const ends = unlessUnreadable(() => readEnds(file)) ?? new Map<number, TrackEnd>();
  const secondsOf = (ns: number) => (ns < maxTrimmedNs ? ns / 1e9 : 0);
  return file.tracks.flatMap(({ kind, language, name, audio_role, number, codecDelayNs }) => {
    const { paddingNs, isCounted } = ends.get(number) ?? { paddingNs: 0, isCounted: false };
    if (kind === null) return [];
    const [delayS, paddingS] = kind === "audio" ? [secondsOf(codecDelayNs), secondsOf(paddingNs)] : [0, 0];
    return [{ kind, language, name, audio_role, delayS, paddingS, timedPaddingS: isCounted ? paddingS : 0 }];
  });
}

/**
 * Copies the tracks into a WebM or Matroska file if they are in such files, and no MP4 can hold them or the copy says more than an MP4. Returns
 * whether it has done so: not with a damaged file.
 */
export async function copyElements(
  sources: readonly ChosenTracks[],
  chosen: readonly InputTrack[],
  { isWebm, signal, ...target }: Omit<CopyTarget, "docType"> & { isWebm: boolean; signal: AbortSignal },
): Promise<boolean> {
  const found = sources.flatMap(({ tracks }) => tracks);
  if (found.length < chosen.length || !isCopiable(sources)) return false;
  const isPadded = () =>
    found.every(({ kind }) => kind === "audio") &&
    sources.some((source) => [...readEnds(source).values()].some(({ paddingNs }) => paddingNs > 0));
  if (!isWebm && (await fitMp4(chosen)) && unlessUnreadable(isPadded) !== true) return false;
  const isCopied = await copyUndamaged(sources, { ...target, docType: isWebm ? "webm" : "matroska" }, signal);
  if (!isCopied) ftruncateSync(target.fd);
  return isCopied;
}

/** Copies the tracks; returns false if a file is damaged: then it cannot be copied whole. */
async function copyUndamaged(
  sources: readonly ChosenTracks[],
  target: CopyTarget,
  signal: AbortSignal,
): Promise<boolean> {
  return runSteps(copyMatroska(sources, target), signal).then(() => true, upstreamAs(false));
}

async function fitMp4(tracks: readonly InputTrack[]): Promise<boolean> {
  const possible: readonly (MediaCodec | null)[] = new mediabunny.Mp4OutputFormat().getSupportedCodecs();
  const codecs = await Promise.all(tracks.map((track) => track.getCodec()));
  return codecs.every((codec) => codec !== null && possible.includes(codec));
}

/** Copies all tracks, attachments and tags of a WebM or Matroska file, with additions. Returns false if it is damaged. */
export async function addToMatroska(
  path: string,
  target: string,
  additions: Additions,
  signal: AbortSignal,
): Promise<boolean> {
  using file = openFile(path);
  await using copy = await open(target, "w");
  const found = unlessUnreadable(() => {
    const source = selectAll(file.fd);
    return source && { source, docType: readDocType(source), kept: keptElements(source, additions) };
  });
  if (found === undefined) return false;
  const { source, ...own } = found;
  return await copyUndamaged([source], { fd: copy.fd, additions, ...own }, signal);
}

/**
 * Opens a file, or a copy of it at `copy` if mediabunny cannot read all of its frames or their times, until `opened` is disposed of.
 * @param isMp4Wanted Else tracks that WebM may have are copied as they are.
 */
export async function openPlain(
  path: string,
  copy: string,
  opened: DisposableStack,
  { isMp4Wanted, signal }: { isMp4Wanted: boolean; signal: AbortSignal },
) {
  const file = opened.use(openLocalInput(path));
  opened.defer(() => rmSync(copy, { force: true }));
  const source = unlessUnreadable(() => selectNeedy(file, isMp4Wanted));
  return source && (await copyPlain(source, copy, signal)) ? opened.use(openLocalInput(copy)) : file;
}

/**
 * Returns the video and audio of a Matroska file if mediabunny does not read it well: it does not read zlib, and header stripping only in blocks
 * without laces; and it takes the frames of a lace for equally long, which those of Vorbis are not. Undefined for all others.
 */
function selectNeedy({ fd, headerTracks }: LocalInput, isMp4Wanted: boolean): ChosenTracks | undefined {
  const numbers = headerTracks.map(({ number }) => number);
  if (headerTracks.some(({ isEncoded }) => isEncoded)) return selectTracks(fd, numbers);
  if (!isMp4Wanted && headerTracks.every(({ codecId }) => webmCodecIds.has(codecId))) return undefined;
  const source = selectTracks(fd, numbers);
  return source && hasLacedVorbis(source) ? source : undefined;
}

/** Copies tracks of a Matroska file to `target` without compression, Vorbis also without laces. Returns false if the file is damaged. */
async function copyPlain(source: ChosenTracks, target: string, signal: AbortSignal): Promise<boolean> {
  await using copy = await open(target, "w");
  const to = { fd: copy.fd, docType: "matroska", additions: noAdditions, isPlain: true } as const;
  return await copyUndamaged([source], to, signal);
}

/** Copies a file that this program has written. @throws ServiceError as `copyMatroska` */
export async function copyWritten(path: string, target: CopyTarget, signal: AbortSignal): Promise<void> {
  using file = openFile(path);
  await runSteps(copyMatroska([selectAll(file.fd)!], target), signal);
}
