interface FlacFrameOptions {
  samples?: number;
  /** It says that blocks have several sizes, and `number` is that of its first sample. */
  isVariable?: boolean;
}

/** Makes the start of a FLAC file (RFC 9639 §8) of 16 bits, mono, 44.1 kHz, with so many bytes of padding. */
export function flacStart(samples: number, padding = 8): Buffer {
  const info = Buffer.alloc(4 + 4 + 34);
  info.write("fLaC\0\0\0\x22", "latin1");
  info.writeUInt16BE(192, 8);
  info.writeUInt16BE(192, 10);
  info.writeUInt32BE((44_100 << 12) | (15 << 4), 18);
  info.writeUInt32BE(samples, 22);
  const last = Buffer.alloc(4 + padding);
  last.writeUInt32BE(0x8100_0000 + padding);
  return Buffer.concat([info, last]);
}

/** Makes a frame (§9) of samples that are not compressed. */
export function flacFrame(number: number, { samples = 192, isVariable = false }: FlacFrameOptions = {}): Buffer {
  const size = [(samples - 1) >> 8, (samples - 1) & 255];
  const head = [0xff, isVariable ? 0xf9 : 0xf8, 0x79, 0x08, ...coded(number), ...size];
  const content = Buffer.alloc(1 + samples * 2, Buffer.from(`${number} is what it sounds like `));
  content[0] = 2;
  const frame = Buffer.concat([Buffer.from([...head, checksum(head, 8, 0x07)]), content]);
  const sum = checksum(frame, 16, 0x8005);
  return Buffer.concat([frame, Buffer.from([sum >> 8, sum & 255])]);
}

/** As UTF-8 does. */
function coded(number: number): number[] {
  return [...Buffer.from(String.fromCodePoint(number))];
}

/** Returns the checksum of so many bits by a polynomial. */
export function checksum(bytes: Iterable<number>, width: number, polynomial: number): number {
  let rest = 0;
  for (const byte of bytes) {
    rest ^= byte << (width - 8);
    for (let bit = 0; bit < 8; bit++) rest = (rest << 1) ^ ((rest >> (width - 1)) & 1 ? polynomial : 0);
    rest &= 2 ** width - 1;
  }
  return rest;
}
