import { createFileWindow, openFile } from "../../../remux/open-file.ts";
import { countChunkBreaks } from "./chunk-breaks.ts";

/** Of a tag: its type, the size of its data, a time, and the number of its stream. */
const headerBytes = 11;
const streamAt = 8;
/** After each tag: its size, which some writers state otherwise, and which the last one may lack. */
const sizeBytes = 4;
/** Audio, video, and data in two forms. */
const types: ReadonlySet<number> = new Set([8, 9, 15, 18]);

/**
 * Returns at how many places of an FLV file there are bytes between tags that are not tags, or a tag is cut off (Adobe Flash Video File
 * Format 10.1 §E.3), as `countChunkBreaks` does; 0 of another file.
 * @throws the file system's own errors.
 */
export function countFlvBreaks(path: string): number {
  using file = openFile(path);
  const window = createFileWindow(file);
  const head = window.at(0);
  if (head.length < 9 || head.toString("latin1", 0, 3) !== "FLV") return 0;
  const start = head.readUInt32BE(5) + sizeBytes;
  const streamOf = (bytes: Buffer, at: number) => bytes.toString("latin1", at + streamAt, at + headerBytes);
  const stream = streamOf(window.at(start), 0);
  return countChunkBreaks(window, start, {
    headerBytes,
    read(each, at) {
      const bytes = each.at(at);
      if (bytes.length < headerBytes || !isType(bytes[0]!)) return undefined;
      const end = at + headerBytes + bytes.readUIntBE(1, 3);
      return { end, next: end + sizeBytes };
    },
    isUsual: (bytes, at) => isType(bytes[at] ?? 0) && streamOf(bytes, at) === stream,
  });
}

/** The bit 32 says that the data are encrypted. */
const isType = (byte: number): boolean => types.has(byte & ~32);
