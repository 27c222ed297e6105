import type { FileWindow } from "../open-file.ts";

/** Returns where the tags that start at `at` end: ID3v2, ID3v1, Lyrics3 and APE; `at` if there are none. */
export function endOfTags(file: FileWindow, at: number): number {
  let end = at;
  for (let length = tagLength(file, end); length > 0; length = tagLength(file, end)) end += length;
  return Math.min(end, file.size);
}

/** Returns where an APE tag that starts at `at` ends, if it has only a footer, as the first version of them has; `at` if it ends not before `to`. */
export function endOfFooterTag(file: FileWindow, at: number, to: number): number {
  const bytes = file.at(at).subarray(0, to - at);
  const footer = bytes.indexOf(apeSignature);
  const end = footer + apeHeaderBytes;
  const isTag = footer > 0 && end <= bytes.length && bytes.readUInt32LE(footer + 12) === end;
  return isTag ? at + end : at;
}

/**
 * Returns where the audio after all leading ID3 tags starts, and the first timestamp in them (RFC 8216 §3.4) in ticks of
 * 1/90000 s modulo 2^33; `null` if they have none.
 */
export function skipId3Tags(segment: Uint8Array): { start: number; timestamp: number | null } {
  const bytes = Buffer.from(segment.buffer, segment.byteOffset, segment.length);
  let start = 0;
  let timestamp: number | null = null;
  for (let length = id3Length(bytes, 0); length > 0; length = id3Length(bytes, start)) {
    timestamp ??= readTimestamp(bytes.subarray(start + id3HeaderBytes, start + length));
    start += length;
  }
  return { start, timestamp };
}

const id3HeaderBytes = 10;
const id3v1Bytes = 128;
const apeSignature = "APETAGEX";
const apeHeaderBytes = 32;
/** Of both versions: after the text, and after the text and the number of its bytes. */
const lyricsEnd = /LYRICS(?:END|200)/;
/** A comment of the first version has at most 5,100 bytes; others are longer. */
const maxLyricsBytes = 64 << 10;

function tagLength(file: FileWindow, at: number): number {
  if (at >= file.size) return 0;
  const bytes = file.at(at);
  const id3 = id3Length(bytes, 0);
  if (id3 > 0) return id3;
  const start = bytes.toString("latin1", 0, 8);
  if (start.startsWith("TAG") && bytes.length >= id3v1Bytes) return id3v1Bytes;
  if (start === "LYRICSBE") {
    const end = lyricsEnd.exec(bytes.toString("latin1", 0, maxLyricsBytes));
    return end === null ? 0 : end.index + end[0].length;
  }
  if (start !== apeSignature || bytes.length < apeHeaderBytes) return 0;
  // The size counts the footer, not the header.
  return bytes.readUInt32LE(12) + apeHeaderBytes;
}

/** Returns the length of the ID3v2 tag at `at` (ID3v2.4 "Main Structure" §3.1) with header and footer; 0 if there is none. */
export function id3Length(bytes: Buffer, at: number): number {
  if (at + id3HeaderBytes > bytes.length || bytes.toString("latin1", at, at + 3) !== "ID3") return 0;
  const hasFooter = (bytes.readUInt8(at + 5) & 0x10) !== 0;
  return id3HeaderBytes + id3Size(bytes, at + 6) + (hasFooter ? id3HeaderBytes : 0);
}

/** Returns the synchsafe integer (§6.2) at `at`: it has seven bits per byte. */
export function id3Size(bytes: Uint8Array, at: number): number {
  return bytes.subarray(at, at + 4).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
}

const owner = Buffer.from("com.apple.streaming.transportStreamTimestamp\0", "latin1");

/** Reads the lower 33 of 64 bits in the PRIV frame of RFC 8216 §3.4; `null` if there is none. */
function readTimestamp(tag: Buffer): number | null {
  const found = tag.indexOf(owner);
  const at = found + owner.length;
  if (found < 0 || at + 8 > tag.length) return null;
  const high = (tag[at + 3] ?? 0) & 1;
  return high * 2 ** 32 + tag.readUInt32BE(at + 4);
}
