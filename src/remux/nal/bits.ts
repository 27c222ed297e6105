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

export type BitWriter = ReturnType<typeof createBitWriter>;

/** Creates a writer of fields of bits, most significant bit first. */
export function createBitWriter(maxBytes: number) {
  const bytes = Buffer.alloc(maxBytes);
  let position = 0;
  const writeBit = (bit: number): void => {
    if (bit !== 0) bytes[position >> 3]! |= 0x80 >> (position & 7);
    position += 1;
  };
  const write = (value: number, count: number): void => {
    for (let i = count - 1; i >= 0; i--) writeBit((value >> i) & 1);
  };
  return {
    write,
    /** Writes an Exp-Golomb code `ue(v)`. */
    writeUnsigned(value: number): void {
      const length = 32 - Math.clz32(value + 1);
      write(0, length - 1);
      write(value + 1, length);
    },
    /** Fills the byte with ones (cabac_alignment_one_bit). */
    align(): void {
      for (let left = -position & 7; left > 0; left--) writeBit(1);
    },
    copy(from: Buffer, start: number, end: number): void {
      if (((position | start | end) & 7) === 0) {
        from.copy(bytes, position >> 3, start >> 3, end >> 3);
        position += end - start;
        return;
      }
      for (let at = start; at < end; at++) writeBit((from[at >> 3]! >> (7 - (at & 7))) & 1);
    },
    bytes: (): Buffer => bytes.subarray(0, Math.ceil(position / 8)),
  };
}
