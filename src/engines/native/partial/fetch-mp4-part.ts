import { rename } from "node:fs/promises";
import { type Box, childrenOf, damagedError, findChild, firstBox, readBox } from "../../../remux/mp4/boxes.ts";
import { bytesOfCut, type IsThere, type PartNeeds, samplesOfPart } from "../../../remux/mp4/cut-needs.ts";
import { fileBoxes, readSegmentIndex, type SegmentIndex } from "../../../remux/mp4/read/file-boxes.ts";
import { openFile } from "../../../remux/open-file.ts";
import { type ByteSpan, joinSpans, type MediaRange, type TrackKind } from "../../../remux/samples.ts";
import { textSpansOf } from "../../../subtitles/tracks/mp4-track.ts";
import {
  isWorthwhile,
  type PartialChunk,
  type PartialFile,
  type PartialMedia,
  type PartialMediaOptions,
  textLeadS,
  writeParts,
} from "./partial-file.ts";

/**
 * Fetches what ranges need of an MP4, by the index of its samples or, if it is fragmented, of its segments. Returns `null` if
 * it has neither, or the parts are most of it.
 *
 * @throws ServiceError `upstream_invalid` if it is damaged; of `file`; the file system's own errors.
 */
export async function fetchMp4Part(
  file: PartialFile,
  target: string,
  options: PartialMediaOptions,
): Promise<PartialMedia | null> {
  return (await fetchSamples(file, target, options)) ?? fetchFragments(file, target, options);
}

/** Of the top level. */
const maxBoxes = 64;

/**
 * Fetches what ranges need of an MP4 that is not fragmented, and moves the file to `target`: its boxes without the media, and
 * the samples of the ranges. Returns `null` if it has over 64 boxes or an index over 256 MiB, or if the parts are over 1,024
 * or most of it.
 *
 * @throws ServiceError `upstream_invalid` if it is damaged; of `file`; the file system's own errors.
 */
async function fetchSamples(
  file: PartialFile,
  target: string,
  { ranges, audioOnly, acceptsHoles, needsTexts, zeroS, onTotal }: PartialMediaOptions,
): Promise<PartialMedia | null> {
  if (!(await fetchBoxes(file))) return null;
  const withTexts = <Needs extends Pick<PartNeeds, "spans" | "zeroS">>(needs: Needs): Needs => {
    const texts = textsOfPart(file.path, ranges, { zeroS: needs.zeroS, needsTexts });
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

/** Returns where the titles of chapters, and other text that is needed, are that are shown in the ranges. */
function textsOfPart(
  path: string,
  ranges: readonly MediaRange[],
  { zeroS, needsTexts }: { zeroS: number; needsTexts: boolean },
): ByteSpan[] {
  using file = openFile(path);
  const shown = ranges.map(({ startS, endS }) => ({ startS: zeroS + startS, endS: zeroS + endS }));
  return textSpansOf(file, shown, needsTexts);
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

const maxTries = 8;
const maxIndexBytes = 256 << 20;

/** Twice as many as ranges need in a file whose audio and video lie apart; its samples may be scattered all over it. */
const maxParts = 1_024;

/** Fetches the headers of the boxes of the top level, and the index (`moov`). Returns whether it lists all samples. */
async function fetchBoxes(file: PartialFile): Promise<boolean> {
  let hasIndex = false;
  let start = 0;
  for (let count = 0; start < file.size; count += 1) {
    const box = await fetchHeader(file, start);
    if (box.type === "moof" || count === maxBoxes) return false;
    if (box.type === "moov") {
      if (box.end - start > maxIndexBytes) return false;
      await file.fetchMissing([box]);
      hasIndex = true;
    }
    start = box.end;
  }
  return hasIndex;
}

/**
 * Writes the header of a fragmented MP4 and the fragments that ranges need, as its segment index lists them, to files whose
 * names begin with `target`. Returns `null` if it has no such index in front, or that lists not all of it.
 *
 * @throws ServiceError `upstream_invalid` if the file is damaged, or its index is wrong; of `file`.
 */
async function fetchFragments(
  file: PartialFile,
  target: string,
  { ranges, needsTexts, onTotal, ...options }: PartialMediaOptions,
): Promise<PartialMedia | null> {
  const index = await fetchIndex(file);
  if (index === null) return null;
  const { parts, header } = index;
  const zeroS = options.zeroS ?? parts[0]!.startS;
  const wanted = ranges.map(({ startS, endS }) => ({
    startS: zeroS + startS - (needsTexts ? textLeadS : slackS),
    endS: zeroS + endS + slackS,
  }));
  const runs = runsOf(parts, wanted);
  const missing = file.missing(runs);
  if (!isWorthwhile(file, missing)) return null;
  onTotal(file.bytesWith(missing));
  await file.fetchMissing(missing);
  const chunks: PartialChunk[] = [];
  for (const [i, run] of runs.entries()) {
    await checkFragments(file, run);
    const path = i === 0 ? target : `${target}-${i}`;
    await writeParts(file, path, i === 0 ? [...header, run] : [run]);
    chunks.push({ path, skippedS: i === 0 ? 0 : run.startS - runs[i - 1]!.endS });
  }
  const isWhole = runs.at(-1)!.end === parts.at(-1)!.end;
  return { path: target, chunks, hasHoles: false, isWhole, zeroS, missing: { video: [], audio: [] } };
}

const maxBoxBytes = 16 << 20;

/** What is listed is not exact, and a part of a range needs frames beside it. */
const slackS = 0.2;

/** Fetches what comes before the first fragment. */
async function fetchIndex(file: PartialFile) {
  const header: ByteSpan[] = [];
  let parts: SegmentIndex["parts"] | undefined;
  for (let start = 0, count = 0; ; count += 1) {
    const box = await fetchHeader(file, start);
    if (box.type === "moof") break;
    if (box.type === "mdat" || count === maxBoxes) return null;
    const isKept = box.type === "ftyp" || box.type === "moov";
    if (isKept || box.type === "sidx") {
      if (box.end > maxBoxBytes) return null;
      await file.fetchMissing([box]);
    }
    if (isKept) header.push(box);
    // Each track may have one.
    if (box.type === "sidx") {
      const index = readSegmentIndex(await file.read(box), { body: box.body - start }, box.end);
      if (!index.hasIndexes) parts ??= index.parts;
    }
    start = box.end;
  }
  const end = parts?.at(-1)?.end;
  if (parts === undefined || end === undefined || end > file.size) return null;
  // What the index does not list may be media, too.
  if (end < file.size && (await fetchHeader(file, end)).type !== "mfra") return null;
  return { parts, header };
}

type Run = MediaRange & ByteSpan;

/** Returns the first part and those of what is wanted, as one where they follow each other. */
function runsOf(parts: SegmentIndex["parts"], wanted: readonly MediaRange[]): Run[] {
  const runs: Run[] = [];
  for (const [i, part] of parts.entries()) {
    const isLast = i === parts.length - 1;
    const isNeeded = wanted.some(({ startS, endS }) => startS < part.endS && endS > part.startS);
    const isBeyond = isLast && wanted.some(({ endS }) => endS > part.endS);
    if (i > 0 && !isNeeded && !isBeyond) continue;
    const last = runs.at(-1);
    if (last?.end === part.start) Object.assign(last, { end: part.end, endS: part.endS });
    else runs.push({ ...part });
  }
  return runs;
}

/** @throws ServiceError `upstream_invalid` unless a run has whole boxes, and its first fragment says when it is presented. */
async function checkFragments(file: PartialFile, { start, end }: Run): Promise<void> {
  const boxes = [...fileBoxes(file.fd, end, start)];
  const first = boxes.find(({ type }) => type === "moof");
  if (first === undefined || first.end - first.start > maxBoxBytes) throw damagedError(`no fragment is at ${start}`);
  const bytes = await file.read(first);
  const tracks = childrenOf(bytes, firstBox(bytes), "traf");
  const isTimed = tracks.every((traf) => findChild(bytes, traf, "tfdt") !== undefined);
  if (!isTimed) throw damagedError(`the fragment at ${first.start} does not say when it is presented`);
}

async function fetchHeader(file: PartialFile, start: number): Promise<Box> {
  const span = { start, end: Math.min(start + 16, file.size) };
  await file.fetchNear(span);
  const { type, body, end } = readBox(await file.read(span), 0, file.size - start);
  return { type, start, body: start + body, end: start + end };
}
