/** MPEG-2 timestamps count ticks of 1/90000 s, modulo 2^33 (ISO/IEC 13818-1 §2.4.3.7). */
export const ticksPerSecond = 90_000;
export const timestampRange = 2 ** 33;

/** The timestamps of a PES packet; without a DTS it is the PTS. */
export interface PesTime {
  pts: number;
  dts: number;
}

/** Returns the number nearest to `near` that is `stamp` modulo 2^33. */
export function unwrap(stamp: number, near: number): number {
  return stamp + Math.round((near - stamp) / timestampRange) * timestampRange;
}

/** Reads the 33 bits of a timestamp, with marker bits between them, from five bytes (§2.4.3.6). */
export function readTimestamp(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] ?? 0) >> 1) & 7;
  const middle = ((bytes[at + 1] ?? 0) << 22) | (((bytes[at + 2] ?? 0) >> 1) << 15);
  const low = ((bytes[at + 3] ?? 0) << 7) | ((bytes[at + 4] ?? 0) >> 1);
  return high * 2 ** 30 + (middle | low);
}
