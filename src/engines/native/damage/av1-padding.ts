/** What the first bytes of an open bitstream unit of AV1 say of it (AV1 §5.3). */
interface ObuHeader {
  /** It has only padding, which may be zeros (§5.7). */
  isPadding: boolean;
  /** With its header; Infinity: to the end of what it is in. */
  bytes: number;
}

/** More cannot be in front of what a unit has. */
export const maxObuHeaderBytes = 10;
const paddingType = 15;
const maxSizeBytes = 8;

/** @param byteAt Returns a byte of the unit, by its distance from its first one. */
export function readObuHeader(byteAt: (at: number) => number): ObuHeader {
  const first = byteAt(0);
  const isPadding = ((first >> 3) & 15) === paddingType;
  let at = (first & 4) === 0 ? 1 : 2;
  if ((first & 2) === 0) return { isPadding, bytes: Infinity };
  let size = 0;
  for (let i = 0; i < maxSizeBytes; i++) {
    const byte = byteAt(at++);
    size += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) break;
  }
  return { isPadding, bytes: at + size };
}
