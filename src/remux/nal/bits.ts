export type BitReader = ReturnType<typeof createBitReader>;

/** Creates a reader of fields of bits, most significant bit first. */
export function createBitReader(bytes: Uint8Array) {
  let position = 0;
  const readBit = (): number => {
    const byte = bytes[position >> 3] ?? 0;
    return (byte >> (7 - (position++ & 7))) & 1;
  };
  /** Reads `count` bits (at most 32) as an unsigned integer. */
  const read = (count: number): number => {
    let value = 0;
    for (let i = 0; i < count; i++) value = value * 2 + readBit();
    return value;
  };
  /** Reads an Exp-Golomb code `ue(v)` (ISO/IEC 14496-10 §9.1), at most 2^32 − 2. */
  const readUnsigned = (): number => {
    let zeros = 0;
    while (zeros < 32 && readBit() === 0) zeros++;
    return zeros > 31 ? 2 ** 32 - 2 : 2 ** zeros - 1 + read(zeros);
  };
  return {
    read,
    readUnsigned,
    /** Reads an Exp-Golomb code `se(v)`. */
    readSigned(): number {
      const code = readUnsigned();
      return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
    },
    skip(count: number): void {
      position += count;
    },
    /** Bits read or skipped so far. */
    get position(): number {
      return position;
    },
    /** More bits were read than there are; the missing ones read as 0. */
    get isOverrun(): boolean {
      return position > bytes.length * 8;
    },
  };
}
