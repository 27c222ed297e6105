export interface FlacFrameHeader {
  samples: number;
  /** How many samples there are to its end. */
  end: number;
  /** Of the frame, or of its first sample if blocks have several sizes. */
  number: number;
  /** Bytes, with the checksum. */
  length: number;
}

/**
 * Reads the header of a frame of FLAC (RFC 9639 §9.1); `null` if it has none. Its checksum is not checked.
 *
 * @param blockSize Of a stream whose blocks have one size.
 */
export function readFrameHeader(frame: Buffer, blockSize: number): FlacFrameHeader | null {
  if (frame.length < 8 || frame.readUInt16BE(0) >> 1 !== syncCode) return null;
  const code = frame[2]! >> 4;
  const rateCode = frame[2]! & 15;
  const first = frame[4]!;
  const coded = codedLength(first);
  if (code === 0 || coded > 7) return null;
  let number = coded === 1 ? first : first & (0x7f >> coded);
  for (let i = 1; i < coded; i++) number = number * 64 + ((frame[4 + i] ?? 0) & 0x3f);
  const at = 4 + coded;
  const [byte = 0, next = 0] = frame.subarray(at);
  const samples = code === 6 ? byte + 1 : code === 7 ? byte * 256 + next + 1 : sizeOf(code);
  const isVariable = (frame[1]! & 1) === 1;
  const sizeBytes = code === 6 ? 1 : code === 7 ? 2 : 0;
  const rateBytes = rateCode === 12 ? 1 : rateCode === 13 || rateCode === 14 ? 2 : 0;
  const length = at + sizeBytes + rateBytes + 1;
  return { samples, end: (isVariable ? number : number * blockSize) + samples, number, length };
}

/** Returns how many bytes the number of a frame has, by its first one: it is coded as UTF-8 is. */
export const codedLength = (first: number): number => (first < 0x80 ? 1 : Math.clz32(~(first << 24)));

const syncCode = 0x7ffc;

/** Block sizes by code (RFC 9639 §9.1.1). */
function sizeOf(code: number): number {
  if (code === 1) return 192;
  return code < 6 ? 144 << code : 1 << code;
}

/** Returns the checksum of a header (RFC 9639 §9.1.8), which ends with it: 0 if it is right. */
export function headerChecksum(header: Uint8Array): number {
  let crc = 0;
  for (const byte of header) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : crc << 1;
  }
  return crc;
}

/**
 * Returns the checksum of a frame (RFC 9639 §9.3), which ends with it: 0 if it is right.
 *
 * @param crc Of the bytes before.
 */
export function frameChecksum(bytes: Uint8Array, crc = 0): number {
  let rest = crc;
  for (let i = 0; i < bytes.length; i++) rest = ((rest << 8) & 0xffff) ^ checksums[(rest >> 8) ^ bytes[i]!]!;
  return rest;
}

/** By one byte. */
const checksums = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x8005) & 0xffff : crc << 1;
  return crc;
});
