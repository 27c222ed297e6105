import { unlessUnreadable } from "../../model/errors.ts";
import { codecOf } from "../codec-name.ts";
import { type FileHeader, roundNumber } from "../media-summary.ts";
import { type Box, typeAt, viewOf } from "./boxes.ts";
import { isQuarterTurn, multiplyMatrices } from "./matrix.ts";
import { type MovieHeader, readMediaHeader, readMovieHeader, readTrackHeader } from "./read/headers.ts";
import { type PixelSize, readDisplaySize } from "./sample-entry.ts";

/**
 * Reads the index (`moov`) of an MP4 file, as far as its first bytes have it; nothing if the index
 * comes later. Takes time linear in the number of bytes; never throws.
 */
export function readMp4Header(start: Uint8Array): FileHeader {
  const [moov] = childrenOf(start, { body: 0, end: start.length }, "moov");
  const [mvhd] = moov === undefined ? [] : childrenOf(start, moov, "mvhd");
  const movie = mvhd && unlessUnreadable(() => readMovieHeader(start, mvhd));
  const traks = moov === undefined ? [] : childrenOf(start, moov, "trak").slice(0, maxTracks);
  const video = traks.find((trak) => handlerOf(start, trak) === "vide");
  const audio = traks.find((trak) => handlerOf(start, trak) === "soun");
  const missing = (video ?? audio) !== undefined && moov?.isCut === false ? "none" : null;
  const size = video && movie && unlessUnreadable(() => readSize(start, video, movie));
  return {
    container: "mp4",
    duration: movie?.duration ? roundNumber(movie.duration / movie.timescale) : null,
    width: size?.width ?? null,
    height: size?.height ?? null,
    fps: (video && unlessUnreadable(() => readFrameRate(start, video))) ?? null,
    vcodec: video === undefined ? missing : codecOfTrack(start, video),
    acodec: audio === undefined ? missing : codecOfTrack(start, audio),
  };
}

const maxTracks = 100;

/** A box whose content may be cut off at `end`. */
interface PartialBox extends Box {
  isCut: boolean;
}

/** Of one box; an index has dozens. */
const maxBoxes = 1_000;

/** Returns the children with this type among the first 1,000; what comes after a damaged one is left out. */
function childrenOf(bytes: Uint8Array, parent: Pick<Box, "body" | "end">, type: string): PartialBox[] {
  const view = viewOf(bytes);
  const found: PartialBox[] = [];
  for (let at = parent.body, count = 0; parent.end - at >= 8 && count < maxBoxes; count++) {
    const field = view.getUint32(at);
    const isLong = field === 1 && parent.end - at >= 16;
    const long = isLong ? view.getUint32(at + 8) * 2 ** 32 + view.getUint32(at + 12) : field;
    // 0: the box extends to the end of the file.
    const size = field === 0 ? Infinity : long;
    const body = at + (isLong ? 16 : 8);
    if (at + size < body) break;
    const end = Math.min(at + size, parent.end);
    const isCut = at + size > parent.end;
    if (typeAt(bytes, at + 4) === type) found.push({ type, start: at, body, end, isCut });
    at += size;
  }
  return found;
}

function findPath(bytes: Uint8Array, box: Box, ...path: string[]): PartialBox | undefined {
  const [type, ...rest] = path;
  const child = childrenOf(bytes, box, type ?? "")[0];
  return child === undefined || rest.length === 0 ? child : findPath(bytes, child, ...rest);
}

/** Returns the type of a track (§8.4.3). */
function handlerOf(bytes: Uint8Array, trak: Box): string | null {
  const hdlr = findPath(bytes, trak, "mdia", "hdlr");
  return hdlr === undefined || hdlr.end - hdlr.body < 12 ? null : typeAt(bytes, hdlr.body + 8);
}

function firstSampleEntry(bytes: Uint8Array, trak: Box): Uint8Array | null {
  const stsd = findPath(bytes, trak, "mdia", "minf", "stbl", "stsd");
  const from = stsd === undefined ? 0 : stsd.body + 8;
  if (stsd === undefined || stsd.end - from < 8) return null;
  const size = viewOf(bytes).getUint32(from);
  return from + size > stsd.end ? null : bytes.subarray(from, from + size);
}

function codecOfTrack(bytes: Uint8Array, trak: Box): string | null {
  const entry = firstSampleEntry(bytes, trak);
  return entry === null ? null : codecOf(entry);
}

const maxPixels = 65_535;

/** Returns the size as displayed, as the size of the finished file is. */
function readSize(bytes: Uint8Array, trak: Box, movie: MovieHeader): PixelSize | undefined {
  const tkhd = findPath(bytes, trak, "tkhd");
  if (tkhd === undefined) return undefined;
  const track = readTrackHeader(bytes, tkhd);
  const { width, height } = readDisplaySize(firstSampleEntry(bytes, trak) ?? bytes.subarray(0, 0)) ?? track;
  const isValid = [width, height].every((side) => side > 0 && side <= maxPixels);
  if (!isValid) return undefined;
  return isQuarterTurn(multiplyMatrices(track.matrix, movie.matrix))
    ? { width: height, height: width }
    : { width, height };
}

const maxFrameRate = 1_000;

/** Returns the mean of all frames (`stts`, §8.6.1.2); undefined if there are none, or not all of the table. */
function readFrameRate(bytes: Uint8Array, trak: Box): number | undefined {
  const view = viewOf(bytes);
  const mdhd = findPath(bytes, trak, "mdia", "mdhd");
  const stts = findPath(bytes, trak, "mdia", "minf", "stbl", "stts");
  if (mdhd === undefined || stts === undefined || stts.isCut) return undefined;
  let [frames, ticks] = [0, 0];
  for (let at = stts.body + 8; at + 8 <= stts.end; at += 8) {
    const count = view.getUint32(at);
    frames += count;
    ticks += count * view.getUint32(at + 4);
  }
  const rate = (frames * readMediaHeader(bytes, mdhd).timescale) / ticks;
  return rate <= maxFrameRate ? (roundNumber(rate) ?? undefined) : undefined;
}
