/** An ID3 tag before packed audio (ID3v2.4 "Main Structure" §3.1, RFC 8216 §3.4). */
interface Id3Tag {
  /** Bytes of the tag, header and footer included. */
  length: number;
  /** Of the first sample after it: ticks of 1/90000 s modulo 2^33; `null`: not stated. */
  timestamp: number | null;
}

const headerLength = 10;
const owner = Buffer.from("com.apple.streaming.transportStreamTimestamp\0", "latin1");

/** Returns where the audio after all leading tags starts, and the first timestamp in them. */
export function skipId3Tags(bytes: Uint8Array): { start: number; timestamp: number | null } {
  let start = 0;
  let timestamp: number | null = null;
  for (let tag = readTag(bytes, 0); tag; tag = readTag(bytes, start)) {
    start += tag.length;
    timestamp ??= tag.timestamp;
  }
  return { start, timestamp };
}

/** Returns the tag at `at`; `null` if there is none. */
function readTag(bytes: Uint8Array, at: number): Id3Tag | null {
  const isTag = bytes[at] === 0x49 && bytes[at + 1] === 0x44 && bytes[at + 2] === 0x33;
  if (!isTag || at + headerLength > bytes.length) return null;
  const hasFooter = ((bytes[at + 5] ?? 0) & 0x10) !== 0;
  const contentEnd = at + headerLength + readSize(bytes, at + 6);
  const content = Buffer.from(bytes.subarray(at + headerLength, contentEnd));
  const length = contentEnd - at + (hasFooter ? headerLength : 0);
  return { length, timestamp: readTimestamp(content) };
}

/** Reads a synchsafe integer (§6.2): seven bits per byte. */
function readSize(bytes: Uint8Array, at: number): number {
  let size = 0;
  for (const byte of bytes.subarray(at, at + 4)) size = size * 128 + (byte & 0x7f);
  return size;
}

/** Reads the lower 33 of 64 bits in the PRIV frame of RFC 8216 §3.4; `null` if there is none. */
function readTimestamp(content: Buffer): number | null {
  const found = content.indexOf(owner);
  const at = found + owner.length;
  if (found < 0 || at + 8 > content.length) return null;
  const high = (content[at + 3] ?? 0) & 1;
  return high * 2 ** 32 + content.readUInt32BE(at + 4);
}
