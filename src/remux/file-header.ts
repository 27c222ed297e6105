import type { FileHeader } from "./media-summary.ts";
import { ids } from "./matroska/elements.ts";
import { readMatroskaHeader } from "./matroska/partial-header.ts";
import { readMp4Header } from "./mp4/partial-index.ts";

/**
 * Reads the media of a file by its first bytes; undefined if it is neither MP4 nor WebM nor Matroska. Takes
 * time linear in the number of bytes, a millisecond for 64 KiB; never throws, whatever they are.
 */
export function readFileHeader(start: Uint8Array): FileHeader | undefined {
  const head = Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, 8));
  if (startsAsMp4(head)) return readMp4Header(start);
  return startsAsMatroska(head) ? readMatroskaHeader(start) : undefined;
}

/** Whether a file begins with a box of MP4 or QuickTime, whose files need not have `ftyp`. */
export function startsAsMp4(head: Buffer): boolean {
  return mp4Boxes.has(head.toString("latin1", 4, 8));
}

/** Whether a file begins with the header of Matroska or WebM. */
export const startsAsMatroska = (head: Buffer): boolean => head.length >= 4 && head.readUInt32BE(0) === ids.ebml;

const mp4Boxes: ReadonlySet<string> = new Set(["ftyp", "moov", "mdat", "free", "skip", "wide", "pnot"]);
