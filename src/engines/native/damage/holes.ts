import { readSync } from "node:fs";
import { chosenBlocks, selectAll } from "../../../remux/matroska/chosen-tracks.ts";
import { createFileWindow, type OpenFile } from "../../../remux/open-file.ts";
import type { ByteSpan, TrackKind } from "../../../remux/samples.ts";
import { maxObuHeaderBytes, readObuHeader } from "./av1-padding.ts";
import { readAviFrames } from "./avi-breaks.ts";
import type { FrameSpan } from "./chunk-breaks.ts";
import { readFlvFrames } from "./flv-breaks.ts";

/**
 * Yields the kind of each frame of a Matroska (WebM), FLV or AVI file that has zeros of `runs` in it, but not at its end: there they
 * may be stuffing. Only of codecs that compress; none of another file.
 * @param runs In order.
 * @throws ServiceError `upstream_invalid` where the file is damaged; the file system's own errors.
 */
export function* findHoles(file: OpenFile, runs: readonly ByteSpan[]): Generator<TrackKind> {
  if (runs.length === 0) return;
  const last = Buffer.alloc(1);
  let next = 0;
  for (const { kind, start, end, isAv1 = false } of framesOf(file)) {
    while (next < runs.length && runs[next]!.start < start) next += 1;
    const run = runs[next];
    if (run === undefined) return;
    if (run.end > end) continue;
    readSync(file.fd, last, 0, 1, end - 1);
    if (last[0] !== 0 && !(isAv1 && isPadding(file.fd, start, run.start))) yield kind;
  }
}

/** A frame has few. */
const maxObus = 64;

/** Returns whether what is at `at` in a frame of AV1 is padding. */
function isPadding(fd: number, frameStart: number, at: number): boolean {
  const header = Buffer.alloc(maxObuHeaderBytes);
  let start = frameStart;
  for (let left = maxObus; left > 0; left--) {
    readSync(fd, header, 0, header.length, start);
    const obu = readObuHeader((index) => header[index] ?? 0);
    start += obu.bytes;
    if (start > at) return obu.isPadding;
  }
  return false;
}

function* framesOf(file: OpenFile): Generator<FrameSpan> {
  yield* readMatroskaFrames(file);
  const window = createFileWindow(file);
  yield* readFlvFrames(window);
  yield* readAviFrames(window);
}

/** Codecs of Matroska whose frames have no long runs of zeros; lossless audio may, and so may AC-3, whose frames are filled with them. */
const codecs = /^(?:V_MPEG|V_VP[89]|V_AV1|V_THEORA|A_AAC|A_OPUS|A_VORBIS|A_MPEG)/;

function* readMatroskaFrames({ fd }: OpenFile): Generator<FrameSpan> {
  const file = selectAll(fd);
  if (file === undefined) return;
  const tracks = file.tracks.filter(({ codecId, isEncoded }) => codecs.test(codecId) && !isEncoded);
  const byNumber = new Map(tracks.map((track) => [track.number, track]));
  for (const { track, body, end } of chosenBlocks({ ...file, tracks })) {
    const { kind = null, codecId } = byNumber.get(track) ?? {};
    if (kind !== null) yield { kind, start: body, end, isAv1: codecId === "V_AV1" };
  }
}
