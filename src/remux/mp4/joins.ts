/** Where a sample may follow one that it does not continue. Samples are those of MP4 (ISO/IEC 14496-15 §5.3.2). */

const avcIdr = 5;
const hevc = { brokenLink: 16, cleanAccess: 21 };

/**
 * Returns whether a decoder starts anew with a sync sample of this sample entry, of which at least the start is given. Of H.264
 * that is an IDR picture (ISO/IEC 14496-10 §7.4.1.2.1): after another one, pictures may be shown in the wrong order.
 */
export function canJoin(sample: Uint8Array, sampleEntry: Uint8Array): boolean {
  const lengthBytes = lengthBytesOf(sampleEntry, "avcC", 4);
  if (lengthBytes === null) return true;
  for (const { bytes, at } of nalUnits(sample, lengthBytes)) {
    const type = bytes.readUInt8(at) & 31;
    if (type >= 1 && type <= avcIdr) return type === avcIdr;
  }
  return false;
}

/**
 * Returns a sync sample as it has to be after one that it does not continue: a clean random access picture of HEVC becomes a
 * broken link access picture (ISO/IEC 23008-2 §3.11, §7.4.2.2), after which a decoder starts anew. Others stay.
 */
export function asJoined(sample: Uint8Array, sampleEntry: Uint8Array): Uint8Array {
  const lengthBytes = lengthBytesOf(sampleEntry, "hvcC", 21);
  if (lengthBytes === null) return sample;
  const copy = Buffer.from(sample);
  for (const { at } of nalUnits(copy, lengthBytes)) {
    const head = copy.readUInt8(at);
    if (((head >> 1) & 0x3f) === hevc.cleanAccess) copy.writeUInt8((head & 0x81) | (hevc.brokenLink << 1), at);
  }
  return copy;
}

/** Returns how many bytes the lengths of NAL units have by the configuration in a sample entry; `null`: it has none. */
function lengthBytesOf(sampleEntry: Uint8Array, configuration: string, field: number): number | null {
  const entry = Buffer.from(sampleEntry.buffer, sampleEntry.byteOffset, sampleEntry.length);
  const found = entry.indexOf(configuration, 86, "latin1");
  const at = found + 4 + field;
  return found < 0 || at >= entry.length ? null : (entry.readUInt8(at) & 3) + 1;
}

/** Yields where the NAL units of a sample start, as far as they are whole up to there. */
function* nalUnits(sample: Uint8Array, lengthBytes: number): Generator<{ bytes: Buffer; at: number }> {
  const bytes = Buffer.from(sample.buffer, sample.byteOffset, sample.length);
  for (let at = 0; at + lengthBytes < bytes.length; at += lengthBytes + bytes.readUIntBE(at, lengthBytes)) {
    yield { bytes, at: at + lengthBytes };
  }
}
