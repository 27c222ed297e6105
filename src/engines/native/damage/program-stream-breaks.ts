import type { FileWindow } from "../../../remux/open-file.ts";
import { countChunkBreaks } from "./chunk-breaks.ts";
import { Tally } from "./sample-check.ts";

const packId = 0xba;
const endId = 0xb9;
/** Of a pack in MPEG-2, without its stuffing, and in MPEG-1. */
const packBytes = 14;
const oldPackBytes = 12;
/** Sectors of discs are filled with zeros. */
const maxZeros = 4096;

/**
 * Counts the places of a program stream at which there are bytes between packets that are not packets, or a packet is cut off
 * (ISO/IEC 13818-1 §2.5.3, 11172-1 §2.4.3), as `countChunkBreaks` does; 0 for another file.
 */
export function countProgramStreamBreaks(file: FileWindow): number {
  if (!isProgramStream(file.at(0))) return 0;
  return countChunkBreaks(file, 0, { headerBytes: packBytes, read: readPacket, isUsual: isPacket });
}

/**
 * Counts the places at which pictures of the first video stream of a program stream are damaged while its packets follow each other: whole
 * packets are missing, or are there twice. 0 for another file, and for video that is not MPEG-1 or MPEG-2.
 */
export function countDamagedPictures(file: FileWindow): number {
  if (!isProgramStream(file.at(0))) return 0;
  const pictures = new MpegPictures();
  let stream: number | undefined;
  for (let at = 0; at < file.size;) {
    const bytes = file.at(at);
    const length = isPacket(bytes, 0) ? packetLength(bytes) : 0;
    if (length === 0 || length > bytes.length) {
      // That is counted elsewhere.
      pictures.skip();
      const next = length === 0 ? bytes.indexOf(packStart, 1) : length;
      at += next < 0 ? Math.max(1, bytes.length - packStart.length) : next;
      continue;
    }
    const id = bytes[3]!;
    if (id >= firstVideoId && id <= lastVideoId) stream ??= id;
    if (id === stream) pictures.take(bytes.subarray(payloadStart(bytes, length), length));
    at += length;
  }
  return pictures.places();
}

const [firstVideoId, lastVideoId] = [0xe0, 0xef];
const packStart = Buffer.from([0, 0, 1, packId]);

/** Returns where the payload of a packet of audio or video begins, in MPEG-2 (ISO/IEC 13818-1 §2.4.3.6) and MPEG-1 (11172-1 §2.4.3.3). */
function payloadStart(bytes: Buffer, length: number): number {
  let at = 6;
  if ((bytes[at]! & 0xc0) === 0x80) return Math.min(length, 9 + bytes[8]!);
  while (at < length && bytes[at] === 0xff) at += 1;
  if ((bytes[at]! & 0xc0) === 0x40) at += 2;
  const timeBytes = [1, 1, 5, 10][Math.min(3, bytes[at]! >> 4)]!;
  return Math.min(length, at + timeBytes);
}

const isProgramStream = (head: Buffer): boolean => head.length >= packBytes && head.readUInt32BE(0) === 0x100 + packId;

const isPacket = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0 && bytes[at + 1] === 0 && bytes[at + 2] === 1 && (bytes[at + 3] ?? 0) >= endId;

function readPacket(file: FileWindow, at: number): { end: number; next: number } | undefined {
  const bytes = file.at(at);
  const length = isPacket(bytes, 0) ? packetLength(bytes) : zerosBeforePacket(bytes);
  return length === undefined ? undefined : { end: at + length, next: at + length };
}

function packetLength(bytes: Buffer): number {
  const id = bytes[3];
  if (id === endId) return 4;
  if (id === packId) return ((bytes[4] ?? 0) & 0xc0) === 0x40 ? packBytes + ((bytes[13] ?? 0) & 7) : oldPackBytes;
  const length = bytes.length < 6 ? 0 : bytes.readUInt16BE(4);
  // Only some bad writers do not say how long a packet is.
  return length === 0 ? Infinity : 6 + length;
}

/** Returns how many zeros come before a packet; undefined: something else comes, or they are too many for a sector. */
function zerosBeforePacket(bytes: Buffer): number | undefined {
  let zeros = 0;
  while (zeros < maxZeros && bytes[zeros] === 0) zeros += 1;
  const found = zeros - 2;
  return found > 0 && isPacket(bytes, found) ? found : undefined;
}

/** Start codes of MPEG-1 and MPEG-2 video (ISO/IEC 13818-2 §6.2.1), after 00 00 01; those of slices are the numbers of their rows. */
const codes = { picture: 0x00, firstSlice: 0x01, lastSlice: 0xaf, sequence: 0xb3, group: 0xb8 };
const startCode = Buffer.from([0, 0, 1]);
/** Of a start code, with what follows that of a sequence: the height of its pictures. */
const keptBytes = 7;

/** Pictures of a longer group have the numbers of others again. */
const maxGroup = 1024;

/**
 * Checks the pictures of a stream of MPEG-1 or MPEG-2 video: the slices of each begin in the first row, and in every row after that to the
 * last one; and the numbers of those in a group are all there, once, from the lowest to the highest. What comes before the first
 * picture and group, and the last ones, are not looked at: a file may be a part of a stream.
 */
class MpegPictures {
  readonly #pictures = new Tally();
  readonly #groups = new Tally();
  /** The last rows that a picture may have: a frame, and a field. */
  #lastRows: ReadonlySet<number> = new Set();
  /** Of the latest slice; `null`: the picture is not looked at. */
  #row: number | null = null;
  #isRight = true;
  /** Numbers of pictures in the order of display; `null`: the group is not looked at. */
  #numbers: number[] | null = null;
  /** The end of what was read, which a start code may be in. */
  #rest = Buffer.alloc(0);

  /** Gets the next bytes of the stream. */
  take(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let next = 0;
    for (let at = all.indexOf(startCode); at >= 0; at = all.indexOf(startCode, next)) {
      next = at;
      if (at + keptBytes > all.length) break;
      this.#read(all, at + startCode.length);
      next = at + startCode.length;
    }
    this.#rest = Buffer.from(all.subarray(Math.max(next, all.length - keptBytes + 1)));
  }

  /** Call this where bytes are known to be missing: the picture and the group there are not looked at. */
  skip(): void {
    this.#row = null;
    this.#numbers = null;
    this.#rest = Buffer.alloc(0);
  }

  places(): number {
    return Math.max(damagedPlaces(this.#pictures), damagedPlaces(this.#groups));
  }

  #read(bytes: Buffer, at: number): void {
    const code = bytes[at]!;
    if (code >= codes.firstSlice && code <= codes.lastSlice) return this.#addSlice(code);
    if (code === codes.picture) {
      this.#endPicture();
      this.#addNumber(bytes.readUInt16BE(at + 1) >> 6);
    } else if (code === codes.sequence) {
      this.#endPicture();
      this.#lastRows = lastRowsOf(bytes.readUInt16BE(at + 2) & 0xfff);
    } else if (code === codes.group) {
      if (this.#numbers !== null) this.#groups.count(isComplete(this.#numbers));
      this.#numbers = [];
    }
  }

  #addSlice(row: number): void {
    if (this.#row === null) return;
    if (row !== this.#row && row !== this.#row + 1) this.#isRight = false;
    this.#row = row;
  }

  #addNumber(number: number): void {
    if (this.#numbers?.length === maxGroup) this.#numbers = null;
    this.#numbers?.push(number);
  }

  #endPicture(): void {
    if (this.#row !== null && this.#row > 0) this.#pictures.count(this.#isRight && this.#lastRows.has(this.#row));
    this.#row = 0;
    this.#isRight = true;
  }
}

/** Returns the numbers of the last rows of pictures of this height: of a frame, of one that is interlaced, and of a field. */
function lastRowsOf(height: number): Set<number> {
  const fieldRows = Math.ceil(height / 32);
  return new Set([Math.ceil(height / 16), 2 * fieldRows, fieldRows]);
}

/** Whether all numbers from the lowest to the highest are there once; two fields of a frame, one after the other, have the same. */
function isComplete(numbers: readonly number[]): boolean {
  const frames = numbers.filter((number, i) => number !== numbers[i - 1]);
  const distinct = new Set(frames).size;
  return distinct === frames.length && (distinct === 0 || Math.max(...frames) - Math.min(...frames) + 1 === distinct);
}

const understoodItems = 8;
/** How many items must be right for each damaged one: in MPEG-1 a slice may have several rows. */
const rightPerDamaged = 4;

/** Returns the number of places at which items are damaged; 0 if many are: then they mean something else. */
function damagedPlaces({ right, damaged, places }: Tally): number {
  return right >= understoodItems && damaged * rightPerDamaged <= right ? places : 0;
}
