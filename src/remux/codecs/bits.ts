/** Reads fields of bits, most significant bit first. */
export interface BitReader {
  /** Reads `count` bits (at most 32) as an unsigned integer. */
  read(count: number): number;
  skip(count: number): void;
  /** Reads an Exp-Golomb code `ue(v)` (ISO/IEC 14496-10 §9.1), at most 2^32 − 2. */
  readUnsigned(): number;
  /** Reads an Exp-Golomb code `se(v)`. */
  readSigned(): number;
  /** Bits read or skipped so far. */
  readonly position: number;
  /** More bits were read than there are; the missing ones read as 0. */
  readonly isOverrun: boolean;
}

export function createBitReader(bytes: Uint8Array): BitReader {
  let position = 0;
  const readBit = (): number => {
    const byte = bytes[position >> 3] ?? 0;
    return (byte >> (7 - (position++ & 7))) & 1;
  };
  const read = (count: number): number => {
    let value = 0;
    for (let i = 0; i < count; i++) value = value * 2 + readBit();
    return value;
  };
  const readUnsigned = (): number => {
    let zeros = 0;
    while (zeros < 32 && readBit() === 0) zeros++;
    return zeros > 31 ? 2 ** 32 - 2 : 2 ** zeros - 1 + read(zeros);
  };
  return {
    read,
    readUnsigned,
    readSigned() {
      const code = readUnsigned();
      return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
    },
    skip(count) {
      position += count;
    },
    get position() {
      return position;
    },
    get isOverrun() {
      return position > bytes.length * 8;
    },
  };
}
