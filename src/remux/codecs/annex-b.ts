/** Byte stream format of H.264 and HEVC (Annex B of both): a start code before each NAL unit. */
export const startCode = Buffer.from([0, 0, 1]);

/** Returns the end of the NAL unit without zeros at its end: these are part of the next start code. */
export function trimZeros(bytes: Uint8Array, start: number, end: number): number {
  let last = end;
  while (last > start && bytes[last - 1] === 0) last--;
  return last;
}

/** Returns the payload of a NAL unit, without emulation prevention bytes (00 00 *03*). */
export function unescapeNal(unit: Uint8Array): Buffer {
  const payload = Buffer.allocUnsafe(unit.length);
  let length = 0;
  let zeros = 0;
  for (const byte of unit) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    payload[length++] = byte;
  }
  return payload.subarray(0, length);
}
