import type { AccessUnit } from "../mpeg-ts/access-units.ts";

const lengthBytes = 4;

/**
 * Gives an access unit as an MP4 has it: every NAL unit behind its length in four bytes (ISO/IEC
 * 14496-15 §5.3.3), without those that have one of the roles `left out`. Good until the next call.
 */
export function createNalWriter(): (unit: AccessUnit, leftOut: number) => Buffer {
  let buffer = Buffer.allocUnsafeSlow(64 * 1024);
  return (unit, leftOut) => {
    const { bytes, starts, ends, roles, count } = unit;
    const most = bytes.length + count * lengthBytes;
    if (most > buffer.length) buffer = Buffer.allocUnsafeSlow(most * 2);
    let at = 0;
    for (let i = 0; i < count; i++) {
      const start = starts[i] ?? 0;
      const end = ends[i] ?? start;
      if (end === start || ((roles[i] ?? 0) & leftOut) !== 0) continue;
      at = buffer.writeUInt32BE(end - start, at);
      at += bytes.copy(buffer, at, start, end);
    }
    return buffer.subarray(0, at);
  };
}
