import { createFileWindow, type FileWindow, openFile } from "../../../remux/open-file.ts";
import { countChunkBreaks } from "./chunk-breaks.ts";

const packId = 0xba;
const endId = 0xb9;
/** Of a pack in MPEG-2, without its stuffing, and in MPEG-1. */
const packBytes = 14;
const oldPackBytes = 12;
/** Sectors of discs are filled with zeros. */
const maxZeros = 4096;

/**
 * Returns at how many places of a program stream there are bytes between packets that are not packets, or a packet is cut off
 * (ISO/IEC 13818-1 §2.5.3, 11172-1 §2.4.3), as `countChunkBreaks` does; 0 of another file.
 * @throws the file system's own errors.
 */
export function countProgramStreamBreaks(path: string): number {
  using file = openFile(path);
  const window = createFileWindow(file);
  const head = window.at(0);
  if (head.length < packBytes || head.readUInt32BE(0) !== 0x100 + packId) return 0;
  return countChunkBreaks(window, 0, { headerBytes: packBytes, read: readPacket, isUsual: isPacket });
}

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
