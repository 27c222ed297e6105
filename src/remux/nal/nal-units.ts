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

/** Returns a NAL unit with this payload: the inverse of `unescapeNal`. */
export function escapeNal(payload: Uint8Array): Buffer {
  const unit = Buffer.allocUnsafe(payload.length + (payload.length >> 1) + 1);
  let length = 0;
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      unit[length++] = 3;
      zeros = 0;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    unit[length++] = byte;
  }
  return unit.subarray(0, length);
}

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
  const found: Buffer[] = [];
  for (let i = 0; i < roles.length; i++) {
    if ((roles[i] ?? 0) & role) found.push(bytes.subarray(starts[i], ends[i]));
  }
  return found;
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

/** Returns how many bytes the lengths of NAL units have, by this byte of an `avcC` (4) or `hvcC` (21). */
export const lengthBytesOf = (configuration: Buffer, field: number): number => ((configuration[field] ?? 3) & 3) + 1;

/** Yields the NAL units of a sample that have bytes, without their lengths; the last one as far as it is there. */
export function* nalUnits(sample: Uint8Array, lengthSize: number): Generator<Buffer> {
  const bytes = Buffer.from(sample.buffer, sample.byteOffset, sample.length);
  for (let at = 0; at + lengthSize < bytes.length;) {
    const start = at + lengthSize;
    at = start + bytes.readUIntBE(at, lengthSize);
    if (at > start) yield bytes.subarray(start, at);
  }
}
