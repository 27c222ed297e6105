import type { FileWindow } from "../file-window.ts";

const id3HeaderBytes = 10;
const id3v1Bytes = 128;
const apeHeaderBytes = 32;

/** Returns where the tags that start at `at` end: ID3v2, ID3v1 and APE; `at` if there are none. */
export function endOfTags(file: FileWindow, at: number): number {
  let end = at;
  for (let length = tagLength(file, end); length > 0; length = tagLength(file, end)) end += length;
  return Math.min(end, file.size);
}

function tagLength(file: FileWindow, at: number): number {
  if (at >= file.size) return 0;
  const bytes = file.at(at);
  const start = bytes.toString("latin1", 0, 8);
  if (start.startsWith("ID3") && bytes.length >= id3HeaderBytes) {
    const size = bytes.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
    const hasFooter = (bytes.readUInt8(5) & 0x10) !== 0;
    return id3HeaderBytes + size + (hasFooter ? id3HeaderBytes : 0);
  }
  if (start.startsWith("TAG") && file.size - at === id3v1Bytes) return id3v1Bytes;
  if (start === "APETAGEX" && bytes.length >= apeHeaderBytes) {
    // The size counts the footer, not the header.
    return bytes.readUInt32LE(12) + apeHeaderBytes;
  }
  return 0;
}
