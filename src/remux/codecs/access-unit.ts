/** The NAL units of one picture: the unit `i` is in `bytes` from `starts[i]` to `ends[i]`. */
export interface AccessUnit {
  bytes: Buffer;
  starts: readonly number[];
  ends: readonly number[];
  /** Bits of `nal` for each unit. */
  roles: readonly number[];
}

/** Returns the NAL units with this role, without copying them. */
export function nalUnitsWith({ bytes, starts, ends, roles }: AccessUnit, role: number): Buffer[] {
  return roles.flatMap((found, i) => (found & role ? [bytes.subarray(starts[i], ends[i])] : []));
}

const lengthBytes = 4;

/**
 * Returns a function that converts an access unit to the form that an MP4 has: each NAL unit after its
 * length in four bytes (ISO/IEC 14496-15 §5.3.3), without those that have one of the roles `leftOut`.
 * The result is valid until the next call.
 */
export function createNalWriter(): (unit: AccessUnit, leftOut: number) => Buffer {
  let buffer = Buffer.allocUnsafeSlow(64 * 1024);
  return ({ bytes, starts, ends, roles }, leftOut) => {
    const maxBytes = bytes.length + starts.length * lengthBytes;
    if (maxBytes > buffer.length) buffer = Buffer.allocUnsafeSlow(maxBytes * 2);
    let at = 0;
    for (let i = 0; i < starts.length; i++) {
      const start = starts[i] ?? 0;
      const end = ends[i] ?? start;
      if (end === start || ((roles[i] ?? 0) & leftOut) !== 0) continue;
      at = buffer.writeUInt32BE(end - start, at);
      at += bytes.copy(buffer, at, start, end);
    }
    return buffer.subarray(0, at);
  };
}
