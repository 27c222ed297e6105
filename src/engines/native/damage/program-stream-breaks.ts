import type { FileWindow } from "../../../remux/open-file.ts";
import { countChunkBreaks } from "./chunk-breaks.ts";
import { MpegPictures } from "./mpeg-pictures.ts";

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
