import type { PidReader } from "./pids.ts";

const maxLength = 4096;
const headLength = 3;
const stuffing = 0xff;

/**
 * Creates a reader that assembles the sections of a table (ISO/IEC 13818-1 §2.4.4).
 * @param onSection Gets every section with a correct checksum; it is valid until the call returns.
 */
export function createSectionReader(onSection: (section: Buffer) => void): PidReader {
  const buffer = Buffer.alloc(maxLength);
  let length = 0;
  let isOpen = false;

  const append = (bytes: Uint8Array, from: number, to: number): void => {
    let at = from;
    while (isOpen && at < to) {
      if (length === 0 && bytes[at] === stuffing) {
        isOpen = false;
        return;
      }
      const wanted = length < headLength ? headLength : sectionLength(buffer);
      const count = Math.min(to - at, wanted - length);
      buffer.set(bytes.subarray(at, at + count), length);
      length += count;
      at += count;
      if (length < headLength || length < sectionLength(buffer)) continue;
      const section = buffer.subarray(0, length);
      length = 0;
      if (crc32(section) === 0) onSection(section);
    }
  };
  return {
    read(bytes, from, to, isStart) {
      if (!isStart) {
        append(bytes, from, to);
        return;
      }
      const start = Math.min(to, from + 1 + (bytes[from] ?? 0));
      append(bytes, from + 1, start);
      length = 0;
      isOpen = true;
      append(bytes, start, to);
    },
    onLoss() {
      isOpen = false;
      length = 0;
    },
  };
}

function sectionLength(section: Uint8Array): number {
  return Math.min(maxLength, headLength + ((((section[1] ?? 0) & 0x0f) << 8) | (section[2] ?? 0)));
}

const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  return crc;
});

/** CRC of Annex A: 0 for a whole section with its checksum. */
function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) crc = (crc << 8) ^ (crcTable[((crc >>> 24) ^ byte) & 0xff] ?? 0);
  return crc;
}
