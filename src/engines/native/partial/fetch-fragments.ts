import { type Box, boxesIn, damagedError, readBoxHeader, viewOf } from "../../../remux/mp4/boxes.ts";
import { readSegmentIndex, type SegmentIndex } from "../../../remux/mp4/segment-index.ts";
import type { ByteSpan, MediaRange } from "../../../remux/samples.ts";
import {
  isWorthwhile,
  type PartialChunk,
  type PartialFile,
  type PartialMedia,
  type PartialMediaOptions,
  writeParts,
} from "./partial-file.ts";

/**
 * Writes the header of a fragmented MP4 and the fragments that ranges need, as its segment index lists them, to files whose
 * names begin with `target`. Returns `null` if it has no such index in front, or that lists not all of it.
 *
 * @throws ServiceError `upstream_invalid` if the file is damaged, or its index is wrong; of `file`.
 */
export async function fetchFragments(
  file: PartialFile,
  target: string,
  { ranges, onTotal, ...options }: PartialMediaOptions,
): Promise<PartialMedia | null> {
  const index = await fetchIndex(file);
  if (index === null) return null;
  const { parts, header } = index;
  const zeroS = options.zeroS ?? parts[0]!.startS;
  const runs = runsOf(parts, ranges, zeroS);
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

const maxBoxes = 64;
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

async function fetchHeader(file: PartialFile, start: number): Promise<Box> {
  const span = { start, end: Math.min(start + 16, file.size) };
  await file.fetchNear(span);
  const { type, size, headerBytes } = readBoxHeader(viewOf(await file.read(span)), 0, file.size - start);
  return { type, start, body: start + headerBytes, end: start + size };
}

type Run = MediaRange & ByteSpan;

/** Returns the first part and those of the ranges, as one where they follow each other. */
function runsOf(parts: SegmentIndex["parts"], ranges: readonly MediaRange[], zeroS: number): Run[] {
  const wanted = ranges.map(({ startS, endS }) => ({ startS: zeroS + startS - slackS, endS: zeroS + endS + slackS }));
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
  let first: Box | undefined;
  for (let at = start; at < end;) {
    const box = await fetchHeader(file, at);
    if (box.type === "moof") first ??= box;
    at = box.end;
    if (at > end) throw damagedError(`a segment index has an end at ${end}, within a box`);
  }
  if (first === undefined || first.end - first.start > maxBoxBytes) throw damagedError(`no fragment is at ${start}`);
  const bytes = await file.read(first);
  const view = viewOf(bytes);
  const tracks = [...boxesIn(view, first.body - first.start, bytes.length)].filter(({ type }) => type === "traf");
  const isTimed = tracks.every((traf) => [...boxesIn(view, traf.body, traf.end)].some(({ type }) => type === "tfdt"));
  if (!isTimed) throw damagedError(`the fragment at ${first.start} does not say when it is presented`);
}
