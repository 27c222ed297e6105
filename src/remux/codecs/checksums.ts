/** Each entry is the remainder of a byte: polynomial 0x04c11db7, no reflection. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit++) rest = rest < 0 ? (rest << 1) ^ 0x04c11db7 : rest << 1;
  return rest;
});

/**
 * Returns the checksum of pages of Ogg (RFC 3533 §6) and of tables of MPEG-TS (ISO/IEC 13818-1 Annex A).
 *
 * @param before That of the bytes before.
 */
export function crc32(bytes: Uint8Array, before: number): number {
  let rest = before;
  for (const byte of bytes) rest = ((rest << 8) ^ remainders[(rest >>> 24) ^ byte]!) >>> 0;
  return rest;
}
