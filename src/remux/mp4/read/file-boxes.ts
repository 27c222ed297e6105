import { ServiceError, unlessUnreadable } from "../../../model/errors.ts";
import { openFile, type ReadFile, readInto } from "../../open-file.ts";
import { type Box, damagedError, readBox, viewOf } from "../boxes.ts";

/**
 * Returns whether the MP4 file at `path` is complete: its top-level boxes end where the file ends, and an
 * index (`moov`) and media data (`mdat`) are among them. If the file is not fragmented, stray bytes after
 * the last box are allowed, unless they start another `mdat` or `moof`. Reads only the boxes' headers.
 * @throws the file system's own errors.
 */
export function isCompleteMp4(path: string): boolean {
  using file = openFile(path);
  const { fd, size } = file;
  const types = new Set<string>();
  let end = 0;
  for (const box of completeFileBoxes(fd, size)) {
    types.add(box.type);
    ({ end } = box);
  }
  const hasAll = types.has("moov") && types.has("mdat");
  if (!hasAll || end === size) return hasAll;
  const stray = readFully(fd, Buffer.alloc(Math.min(8, size - end)), end).toString("latin1", 4);
  return !types.has("moof") && stray !== "mdat" && stray !== "moof";
}

/**
 * Returns whether the MP4 file at `path` lists all of its media: it is not fragmented, or ends with an index of its fragments.
 * @throws the file system's own errors.
 */
export function listsItsFragments(path: string): boolean {
  const types = typesIn(path);
  return !types.includes("moof") || types.at(-1) === "mfra";
}

/**
 * Returns whether an index of segments in the MP4 file at `path` lists more bytes than the file has (`sidx`, ISO/IEC 14496-12
 * §8.16.3). One that is damaged or over 1 MiB lists nothing.
 * @throws the file system's own errors.
 */
export function lacksIndexedSegments(path: string): boolean {
  using file = openFile(path);
  const { fd, size } = file;
  return completeFileBoxes(fd, size).some((box) => {
    if (box.type !== "sidx" || box.end - box.body > maxIndexBytes) return false;
    const bytes = readRange(fd, box);
    const index = unlessUnreadable(() => readSegmentIndex(bytes, { body: box.body - box.start }, box.end));
    return (index?.parts.at(-1)?.end ?? 0) > size;
  });
}

/**
 * Returns whether a fragmented MP4 file ends with more than 64 KiB that are no boxes: zeros, the first of which say that they are a box without a
 * type up to the end of the file.
 */
export function endsWithoutBoxes({ fd, size }: ReadFile): boolean {
  const boxes = [...completeFileBoxes(fd, size)];
  const last = boxes.at(-1);
  const isNone = last?.type === "????" && last.end === size && last.end - last.start > maxRestBytes;
  return isNone && boxes.some(({ type }) => type === "moof");
}

/** Padding is not longer. */
const maxRestBytes = 64 << 10;

/** The number of its entries has 16 bits. */
const maxIndexBytes = 1 << 20;

/**
 * Returns whether the file at `path` is an MP4 whose index lists all samples: it is not fragmented.
 * @throws the file system's own errors.
 */
export function isIndexedMp4(path: string): boolean {
  const types = typesIn(path);
  return types.includes("moov") && !types.includes("moof");
}

function typesIn(path: string): string[] {
  using file = openFile(path);
  return [...completeFileBoxes(file.fd, file.size)].map(({ type }) => type);
}

/** A day of one-second fragments of four boxes each is 345,600. */
export const maxBoxes = 1 << 19;

/**
 * Yields the top-level boxes of an open file of `size` bytes, or those that it has `from` there on, in order. Reads only their headers.
 * @throws ServiceError `upstream_invalid` if a box does not end within the file, or beyond 2^19 boxes.
 */
export function* fileBoxes(fd: number, size: number, from = 0): Generator<Box> {
  let count = 0;
  for (let start = from; start < size;) {
    if (++count > maxBoxes) throw damagedError(`it has over ${maxBoxes} boxes on its top level`);
    const left = size - start;
    const header = readFully(fd, Buffer.allocUnsafe(Math.min(16, left)), start);
    const { type, body, end } = readBox(header, 0, left);
    yield { type, start, body: start + body, end: start + end };
    start += end;
  }
}

/** Like `fileBoxes`, but ends before the first box that is cut off or none. */
export function* completeFileBoxes(fd: number, size: number): Generator<Box> {
  try {
    yield* fileBoxes(fd, size);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

const maxRangeBytes = 256 << 20;

/** @throws ServiceError `upstream_invalid` if the range has over 256 MiB, or the file ends before. */
export function readRange(fd: number, { start, end }: Pick<Box, "start" | "end">): Buffer {
  const size = end - start;
  if (size > maxRangeBytes) throw damagedError(`an index or fragment has ${size} bytes, the limit is ${maxRangeBytes}`);
  return readFully(fd, Buffer.allocUnsafe(size), start);
}

/**
 * Fills `into` with the bytes at `position` of an open file and returns it.
 * @throws ServiceError `upstream_invalid` if the file ends before.
 */
export function readFully(fd: number, into: Buffer, position: number): Buffer {
  const end = position + readInto(fd, into, position);
  if (end < position + into.length) throw damagedError(`the file ends at ${end}, before ${position + into.length}`);
  return into;
}

/** Parts of a file that a segment index (`sidx`, ISO/IEC 14496-12 §8.16.3) lists one after the other. */
export interface SegmentIndex {
  parts: { start: number; end: number; startS: number; endS: number }[];
  /** Some of the parts are other indexes. */
  hasIndexes: boolean;
}

/**
 * Returns what an index lists.
 * @param bytes Those of the box, which ends at `endsAt` in its file.
 * @throws ServiceError `upstream_invalid` if it is damaged.
 */
export function readSegmentIndex(bytes: Uint8Array, { body }: Pick<Box, "body">, endsAt: number): SegmentIndex {
  const view = viewOf(bytes);
  const isLong = bytes[body] === 1;
  // The version, the identifier of a track and the scale of times come before two fields of 4 or 8 bytes.
  const tableAt = body + (isLong ? 32 : 24);
  if (tableAt > bytes.length) throw damagedError("a segment index is too short");
  const timescale = view.getUint32(body + 8);
  const field = (index: number) =>
    isLong ? Number(view.getBigUint64(body + 12 + 8 * index)) : view.getUint32(body + 12 + 4 * index);
  const count = view.getUint16(tableAt - 2);
  if (timescale === 0 || tableAt + entryBytes * count > bytes.length) throw damagedError("a segment index is damaged");
  let ticks = field(0);
  let at = endsAt + field(1);
  const index: SegmentIndex = { parts: [], hasIndexes: false };
  for (let entry = tableAt; entry < tableAt + entryBytes * count; entry += entryBytes) {
    const reference = view.getUint32(entry);
    index.hasIndexes ||= reference >= 2 ** 31;
    const [start, startS] = [at, ticks / timescale];
    at += reference % 2 ** 31;
    ticks += view.getUint32(entry + 4);
    index.parts.push({ start, end: at, startS, endS: ticks / timescale });
  }
  return index;
}

const entryBytes = 12;

/** Whether a box says where media are. */
export const isIndex = ({ type }: Box): boolean => type === "moov" || type === "moof";

/** (ISO/IEC 14496-12 §8.16) */
const isWithoutMedia = ({ type }: Box): boolean => ["styp", "sidx", "free"].includes(type);

/**
 * Returns a function that is given the boxes of each segment of a stream, in order, and returns how many have turned out to be without their media.
 * Those with neither media nor an index are only if media follow: what FFmpeg writes as a last segment may have none, as all are in those before.
 */
export function createLostCounter(): (boxes: readonly Box[]) => number {
  let empty = 0;
  return (boxes) => {
    const isLost = !boxes.some(isIndex);
    const mayBeLast = isLost && boxes.every(isWithoutMedia);
    const lost = mayBeLast ? 0 : empty + Number(isLost);
    empty = mayBeLast ? empty + 1 : 0;
    return lost;
  };
}
