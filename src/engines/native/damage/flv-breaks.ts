import type { FileWindow } from "../../../remux/open-file.ts";
import { countChunkBreaks, type FrameSpan } from "./chunk-breaks.ts";

/** Of a tag: its type, the size of its data, a time, and the number of its stream. */
const headerBytes = 11;
const streamAt = 8;
/** After each tag: its size, which some writers state otherwise, and which the last one may lack. */
const sizeBytes = 4;
/** Audio, video, and data in two forms. */
const types: ReadonlySet<number> = new Set([8, 9, 15, 18]);

/**
 * Counts the places of an FLV file at which there are bytes between tags that are not tags, or a tag is cut off (Adobe Flash Video File
 * Format 10.1 §E.3), as `countChunkBreaks` does; 0 for another file.
 */
export function countFlvBreaks(file: FileWindow): number {
  const start = startOf(file);
  if (start === undefined) return 0;
  const streamOf = (bytes: Buffer, at: number) => bytes.toString("latin1", at + streamAt, at + headerBytes);
  const stream = streamOf(file.at(start), 0);
  return countChunkBreaks(file, start, {
    headerBytes,
    read: readTag,
    isUsual: (bytes, at) => isType(bytes[at] ?? 0) && streamOf(bytes, at) === stream,
  });
}

/** The bit 32 says that the data are encrypted. */
const isType = (byte: number): boolean => types.has(byte & ~32);

/** Returns where the first tag is; undefined: it is another file. */
function startOf(file: FileWindow): number | undefined {
  const head = file.at(0);
  const isFlv = head.length >= 9 && head.toString("latin1", 0, 3) === "FLV";
  return isFlv ? head.readUInt32BE(5) + sizeBytes : undefined;
}

function readTag(file: FileWindow, at: number): { end: number; next: number } | undefined {
  const bytes = file.at(at);
  if (bytes.length < headerBytes || !isType(bytes[0]!)) return undefined;
  const end = at + headerBytes + bytes.readUIntBE(1, 3);
  return { end, next: end + sizeBytes };
}

/** Yields the frames of an FLV file that are compressed, up to where it is damaged; none of another file. */
export function* readFlvFrames(file: FileWindow): Generator<FrameSpan> {
  let at = startOf(file);
  while (at !== undefined) {
    const tag = readTag(file, at);
    if (tag === undefined || tag.end > file.size) return;
    const [type, codec] = [file.at(at)[0], file.at(at)[headerBytes] ?? 0];
    if (type === 9 && !screenFrames.has(codec)) yield { kind: "video", start: at + headerBytes, end: tag.end };
    if (type === 8 && compressedAudio.has(codec >> 4)) yield { kind: "audio", start: at + headerBytes, end: tag.end };
    at = tag.next;
  }
}

/** First bytes of frames of recorded screens, key frames and others: their data may have zeros. */
const screenFrames: ReadonlySet<number> = new Set([0x13, 0x23, 0x16, 0x26]);
const compressedAudio: ReadonlySet<number> = new Set([2, 4, 5, 6, 10, 11, 14]);
