import { readSync } from "node:fs";
import { chosenBlocks, selectAll } from "../../../remux/matroska/blocks.ts";
import { createFileWindow, type OpenFile } from "../../../remux/open-file.ts";
import type { ByteSpan, TrackKind } from "../../../remux/samples.ts";
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
    if (last[0] !== 0 && !(isAv1 && isInPadding(file.fd, start, run.start))) yield kind;
  }
}

/** A frame has few. */
const maxObus = 64;

function isInPadding(fd: number, frameStart: number, at: number): boolean {
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

/** No codec that compresses writes this many zeros. */
export const zeroBlockBytes = 2048;
const zeros = Buffer.alloc(zeroBlockBytes);

/** Returns whether the block of `bytes` from `from` on has only zeros. */
export function isZeroBlock(bytes: Buffer, from: number): boolean {
  return bytes[from] === 0 && bytes.compare(zeros, 0, zeroBlockBytes, from, from + zeroBlockBytes) === 0;
}

const maxRuns = 1000;

/** Finds where a file that is read from its start to its end has nothing but zeros: whole blocks, the first 1,000 runs of them. */
export class ZeroRuns {
  /** In order. */
  readonly found: ByteSpan[] = [];
  #at = 0;

  /** Gets the next bytes of the file; it is done with them when it returns. */
  take(bytes: Buffer): void {
    const start = this.#at;
    const first = Math.ceil(start / zeroBlockBytes) * zeroBlockBytes - start;
    for (let from = first; from + zeroBlockBytes <= bytes.length; from += zeroBlockBytes) {
      if (isZeroBlock(bytes, from)) this.#add(start + from);
    }
    this.#at += bytes.length;
  }

  #add(start: number): void {
    const last = this.found.at(-1);
    if (last?.end === start) last.end += zeroBlockBytes;
    else if (this.found.length < maxRuns) this.found.push({ start, end: start + zeroBlockBytes });
  }
}

/** What the first bytes of an open bitstream unit of AV1 say of it (AV1 §5.3). */
interface ObuHeader {
  /** It has only padding, which may be zeros (§5.7). */
  isPadding: boolean;
  /** With its header; Infinity: to the end of what it is in. */
  bytes: number;
}

/** More cannot be in front of what a unit has. */
export const maxObuHeaderBytes = 10;
const paddingType = 15;
const maxSizeBytes = 8;

/** @param byteAt Returns a byte of the unit, by its distance from its first one. */
export function readObuHeader(byteAt: (at: number) => number): ObuHeader {
  const first = byteAt(0);
  const isPadding = ((first >> 3) & 15) === paddingType;
  let at = (first & 4) === 0 ? 1 : 2;
  if ((first & 2) === 0) return { isPadding, bytes: Infinity };
  let size = 0;
  for (let i = 0; i < maxSizeBytes; i++) {
    const byte = byteAt(at++);
    size += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) break;
  }
  return { isPadding, bytes: at + size };
}
