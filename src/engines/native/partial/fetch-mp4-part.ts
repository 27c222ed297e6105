import { rename } from "node:fs/promises";
import { readBoxHeader, viewOf } from "../../../remux/mp4/boxes.ts";
import { bytesOfCut, type IsThere, type PartNeeds, samplesOfPart } from "../../../remux/mp4/cut-needs.ts";
import { openFile } from "../../../remux/open-file.ts";
import { type ByteSpan, joinSpans, type MediaRange, type TrackKind } from "../../../remux/samples.ts";
import { textSpansOf } from "../../../subtitles/tracks/mp4-track.ts";
import { isWorthwhile, type PartialFile, type PartialMedia, type PartialMediaOptions } from "./partial-file.ts";

/**
 * Fetches what ranges need of an MP4 that is not fragmented, and moves the file to `target`: its boxes without the media, and
 * the samples of the ranges. Returns `null` if it has over 64 boxes or an index over 256 MiB, or if the parts are over 1,024
 * or most of it.
 *
 * @throws ServiceError `upstream_invalid` if it is damaged; of `file`; the file system's own errors.
 */
export async function fetchMp4Part(
  file: PartialFile,
  target: string,
  { ranges, audioOnly, acceptsHoles, needsTexts, zeroS, onTotal }: PartialMediaOptions,
): Promise<PartialMedia | null> {
  if (!(await fetchBoxes(file))) return null;
  const withTexts = <Needs extends Pick<PartNeeds, "spans" | "zeroS">>(needs: Needs): Needs => {
    const texts = needsTexts ? textsOfPart(file.path, ranges, needs.zeroS) : [];
    return { ...needs, spans: joinSpans([...needs.spans, ...texts]) };
  };
  if (acceptsHoles) {
    const find = (isThere: IsThere) => withTexts(bytesOfCut(file.path, ranges, isThere));
    if ((await fetchNeeds(file, find, onTotal)) === null) return null;
    await rename(file.path, target);
    return { path: target, hasHoles: true, missing: { video: [], audio: [] }, zeroS: null, isWhole: true };
  }
  // Times count from those of another file if it is that of separate audio.
  const kinds: readonly TrackKind[] = audioOnly || zeroS !== null ? ["audio"] : ["video", "audio"];
  const find = (isThere: IsThere) => {
    const needs = samplesOfPart(file.path, { ranges, kinds, zeroS, isThere });
    return needs && withTexts(needs);
  };
  const needs = await fetchNeeds<PartNeeds>(file, find, onTotal);
  if (needs === null) return null;
  await rename(file.path, target);
  const { spans: within, ...rest } = needs;
  return { path: target, chunks: [{ path: target, skippedS: 0, within }], hasHoles: false, ...rest };
}

/** Returns where the text is that is shown in the ranges. */
function textsOfPart(path: string, ranges: readonly MediaRange[], zeroS: number): ByteSpan[] {
  using file = openFile(path);
  return textSpansOf(
    file,
    ranges.map(({ startS, endS }) => ({ startS: zeroS + startS, endS: zeroS + endS })),
  );
}

/** Fetches what is needed; returns it, or `null` if it is too much. */
async function fetchNeeds<Needs extends { spans: readonly ByteSpan[] }>(
  file: PartialFile,
  find: (isThere: IsThere) => Needs | null,
  onTotal: PartialMediaOptions["onTotal"],
): Promise<Needs | null> {
  // A sample shows only once it is there whether a range may start at it.
  for (let tries = 0; tries < maxTries; tries += 1) {
    const needs = find((span) => file.missing([span]).length === 0);
    if (needs === null) return null;
    const missing = file.missing(needs.spans);
    if (missing.length === 0) return needs;
    if (missing.length > maxParts) return null;
    if (tries === 0 && !isWorthwhile(file, missing)) return null;
    onTotal(file.bytesWith(missing));
    await file.fetchMissing(missing);
  }
  return null;
}

const maxBoxes = 64;
const maxTries = 8;
const maxIndexBytes = 256 << 20;

/** Twice as many as ranges need whose sound and picture lie apart; samples may be scattered all over a file. */
const maxParts = 1_024;

/** Fetches the headers of the boxes of the top level, and the index (`moov`). Returns whether it lists all samples. */
async function fetchBoxes(file: PartialFile): Promise<boolean> {
  let hasIndex = false;
  let start = 0;
  for (let count = 0; start < file.size; count += 1) {
    const header = { start, end: Math.min(start + 16, file.size) };
    await file.fetchNear(header);
    const box = readBoxHeader(viewOf(await file.read(header)), 0, file.size - start);
    if (box.type === "moof" || count === maxBoxes) return false;
    if (box.type === "moov") {
      if (box.size > maxIndexBytes) return false;
      await file.fetchMissing([{ start, end: start + box.size }]);
      hasIndex = true;
    }
    start += box.size;
  }
  return hasIndex;
}
