import { statSync } from "node:fs";
import { readFileStart } from "./file-start.ts";
import { isCompleteMp4 } from "../../../remux/mp4/read/complete.ts";

/**
 * Whether a file has all bytes that its container states. Containers that state no length (MP3, AAC, Ogg,
 * TS …) count as complete.
 */
export function isCompleteFile(path: string): boolean {
  const head = readFileStart(path, Buffer.alloc(64));
  if (mp4Starts.has(head.toString("latin1", 4, 8))) return isCompleteMp4(path);
  const isEbml = head.length >= 4 && head.readUInt32BE(0) === ebmlId;
  return !isEbml || isCompleteEbml(head, statSync(path).size);
}

/** Old QuickTime files have no `ftyp` and begin with one of the others. */
const mp4Starts: ReadonlySet<string> = new Set(["ftyp", "moov", "mdat", "wide", "free"]);

const ebmlId = 0x1a45dfa3;
const segmentId = 0x18538067;

/** Matroska and WebM (RFC 8794 §6): one Segment after the EBML header, of known or unknown size. */
function isCompleteEbml(head: Buffer, size: number): boolean {
  const header = readVarInt(head, 4);
  if (header === undefined) return false;
  const segment = header.end + (header.value ?? 0);
  if (segment + 4 > head.length || head.readUInt32BE(segment) !== segmentId) return true;
  const body = readVarInt(head, segment + 4);
  if (body === undefined) return false;
  return body.value === null || body.end + body.value <= size;
}

/** Reads a variable-size integer (RFC 8794 §4); `value` is `null` if all its bits are set: unknown size. */
function readVarInt(bytes: Buffer, at: number): { value: number | null; end: number } | undefined {
  const first = bytes[at];
  if (first === undefined || first === 0) return undefined;
  const length = Math.clz32(first) - 23;
  if (at + length > bytes.length) return undefined;
  let value = first & (0xff >> length);
  let isUnknown = value === 0xff >> length;
  for (const byte of bytes.subarray(at + 1, at + length)) {
    value = value * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  return { value: isUnknown ? null : value, end: at + length };
}
