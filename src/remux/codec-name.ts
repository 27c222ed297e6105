/** By type of the sample entry; a codec may have several, which differ in where its parameters are. */
const names = new Map([
  ["avc1", "H.264"],
  ["avc2", "H.264"],
  ["avc3", "H.264"],
  ["avc4", "H.264"],
  ["dva1", "H.264"],
  ["dvav", "H.264"],
  ["hvc1", "HEVC"],
  ["hev1", "HEVC"],
  ["dvh1", "HEVC"],
  ["dvhe", "HEVC"],
  ["av01", "AV1"],
  ["dav1", "AV1"],
  ["vp08", "VP8"],
  ["vp09", "VP9"],
  ["ac-3", "AC-3"],
  ["ec-3", "E-AC-3"],
]);

/** Of `mp4a`, by objectTypeIndication (ISO/IEC 14496-1 §7.2.6.6). */
const audioNames = new Map([
  [0x40, "AAC"],
  [0x66, "AAC"],
  [0x67, "AAC"],
  [0x68, "AAC"],
  [0x69, "MPEG audio"],
  [0x6b, "MPEG audio"],
]);

/** Returns the name of the codec of a sample entry: its type if the codec is not known. */
export function nameCodec(sampleEntry: Uint8Array): string {
  const bytes = Buffer.from(sampleEntry.buffer, sampleEntry.byteOffset, sampleEntry.length);
  const type = bytes.toString("latin1", 4, 8);
  if (type === "mp4a") return audioNames.get(readObjectType(bytes) ?? 0) ?? type;
  return names.get(type) ?? type.replaceAll(/[^ -~]/g, "?");
}

function readObjectType(bytes: Buffer): number | null {
  const decoder = findDecoderConfig(bytes);
  return (decoder === null ? undefined : bytes[decoder]) ?? null;
}

/**
 * Returns where the content of the DecoderConfigDescriptor (ISO/IEC 14496-1 §7.2.6.6) is in a sample entry: it begins
 * with the objectTypeIndication. `null` if there is no `esds`.
 */
export function findDecoderConfig(bytes: Buffer): number | null {
  const esds = bytes.indexOf("esds", 0, "latin1");
  if (esds < 0) return null;
  const stream = startOfDescriptor(bytes, esds + 8, 3);
  if (stream === null) return null;
  const flags = bytes[stream + 2] ?? 0;
  const urlLength = flags & 0x40 ? 1 + (bytes[stream + 3 + (flags & 0x80 ? 2 : 0)] ?? 0) : 0;
  const next = stream + 3 + (flags & 0x80 ? 2 : 0) + urlLength + (flags & 0x20 ? 2 : 0);
  return startOfDescriptor(bytes, next, 4);
}

/** Returns where the content of the descriptor (§7.2.2) at `at` starts; `null` if it has another tag. */
export function startOfDescriptor(bytes: Buffer, at: number, tag: number): number | null {
  if (bytes[at] !== tag) return null;
  let next = at + 1;
  while (((bytes[next] ?? 0) & 0x80) !== 0 && next < at + 4) next++;
  return next + 1;
}
