import { createBitReader } from "./nal/bits.ts";

/** Returns the name of the codec of a sample entry: its type if the codec is not known. */
export function nameCodec(sampleEntry: Uint8Array): string {
  const bytes = Buffer.from(sampleEntry.buffer, sampleEntry.byteOffset, sampleEntry.length);
  const type = bytes.toString("latin1", 4, 8);
  if (type === "mp4a") return mp4aNames.get(bytes[findDecoderConfig(bytes) ?? -1] ?? 0) ?? type;
  return names.get(type) ?? type.replaceAll(/[^ -~]/g, "?");
}

/**
 * Returns the codec of a sample entry (ISO/IEC 14496-12 §8.5.2): H.264 and MPEG-4 audio with their profile, of others
 * the type of the entry alone; `null` for encrypted and nameless ones.
 */
export function codecOf(sampleEntry: Uint8Array): string | null {
  const bytes = Buffer.from(sampleEntry.buffer, sampleEntry.byteOffset, sampleEntry.length);
  const type = bytes.toString("latin1", 4, 8).trim();
  if (!/^[\w.-]{3,4}$/.test(type) || type === "encv" || type === "enca") return null;
  if (type === "mp4a") return mp4aCodec(bytes);
  const configuration = type.startsWith("avc") ? bytes.indexOf("avcC", 86, "latin1") : -1;
  return configuration < 0 ? type : avcCodec(type, bytes.subarray(configuration + 4));
}

/** Returns the codec (RFC 6381 §3.3) of a profile as `avcC` and Matroska's CodecPrivate have it in bytes 1 to 3. */
export function avcCodec(type: string, configuration: Uint8Array): string {
  const profile = Buffer.from(configuration.subarray(1, 4));
  return profile.length === 3 ? `${type}.${profile.toString("hex")}` : type;
}

/** By type of the sample entry; a codec may have several, which differ in where its parameters are. */
const names = new Map(
  [
    "H.264 avc1 avc2 avc3 avc4 dva1 dvav",
    "HEVC hvc1 hev1 dvh1 dvhe",
    "AV1 av01 dav1",
    "VP8 vp08",
    "VP9 vp09",
    "AC-3 ac-3",
    "E-AC-3 ec-3",
  ].flatMap((line) => {
    const [name = "", ...types] = line.split(" ");
    return types.map((type) => [type, name] as const);
  }),
);

/** Of `mp4a`, by objectTypeIndication (ISO/IEC 14496-1 §7.2.6.6). */
const mp4aNames = new Map([
  [0x40, "AAC"],
  [0x66, "AAC"],
  [0x67, "AAC"],
  [0x68, "AAC"],
  [0x69, "MPEG audio"],
  [0x6b, "MPEG audio"],
  // Of the MP4 Registration Authority.
  [0xdd, "Vorbis"],
]);

/** The object type, and of MPEG-4 audio the audio object type (ISO/IEC 14496-3 §1.6.2.1) follow. */
function mp4aCodec(bytes: Buffer): string {
  const decoder = findDecoderConfig(bytes);
  const objectType = decoder === null ? undefined : bytes[decoder];
  if (decoder === null || objectType === undefined) return "mp4a";
  const codec = `mp4a.${objectType.toString(16).padStart(2, "0")}`;
  const specific = startOfDescriptor(bytes, decoder + 13, 5);
  const [first = 0, second = 0] = specific === null ? [] : bytes.subarray(specific);
  const audioType = first >> 3 === 31 ? 32 + ((first & 7) << 3) + (second >> 5) : first >> 3;
  return objectType === 0x40 && audioType > 0 ? `${codec}.${audioType}` : codec;
}

/** Sampling rates of AAC by index (ISO/IEC 14496-3 table 1.18). */
export const aacRates: readonly number[] = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
];

/**
 * Returns the samplingFrequency in the AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1) of a sample entry: that of the core, even if SBR doubles it;
 * undefined if it is not MPEG-4 audio.
 */
export function coreRateOf(sampleEntry: Uint8Array): number | undefined {
  const bits = createBitReader(specificOf(sampleEntry, 0x40) ?? new Uint8Array());
  const [escape, explicit] = [31, 15];
  if (bits.read(5) === escape) bits.skip(6);
  const index = bits.read(4);
  const rate = index === explicit ? bits.read(24) : aacRates[index];
  return bits.isOverrun ? undefined : rate;
}

/** Returns the DecoderSpecificInfo (§7.2.6.7) of a sample entry with this object type; undefined if it has another one, or none. */
export function specificOf(sampleEntry: Uint8Array, objectType: number): Uint8Array | undefined {
  const bytes = Buffer.from(sampleEntry.buffer, sampleEntry.byteOffset, sampleEntry.length);
  const decoder = findDecoderConfig(bytes);
  if (decoder === null || bytes[decoder] !== objectType) return undefined;
  const start = startOfDescriptor(bytes, decoder + 13, 5);
  if (start === null) return undefined;
  const size = bytes.subarray(decoder + 14, start).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
  return bytes.subarray(start, start + size);
}

/**
 * Returns where the content of the DecoderConfigDescriptor (ISO/IEC 14496-1 §7.2.6.6) is in a sample entry: it begins
 * with the objectTypeIndication. `null` if there is no `esds`.
 */
function findDecoderConfig(bytes: Buffer): number | null {
  const esds = bytes.indexOf("esds", 0, "latin1");
  if (esds < 0) return null;
  const stream = startOfDescriptor(bytes, esds + 8, 3);
  if (stream === null) return null;
  const flags = bytes[stream + 2] ?? 0;
  const urlAt = stream + 3 + (flags & 0x80 ? 2 : 0);
  const urlLength = flags & 0x40 ? 1 + (bytes[urlAt] ?? 0) : 0;
  return startOfDescriptor(bytes, urlAt + urlLength + (flags & 0x20 ? 2 : 0), 4);
}

/** Returns where the content of the descriptor (§7.2.2) at `at` starts; `null` if it has another tag. */
function startOfDescriptor(bytes: Buffer, at: number, tag: number): number | null {
  if (bytes[at] !== tag) return null;
  let next = at + 1;
  while (((bytes[next] ?? 0) & 0x80) !== 0 && next < at + 4) next++;
  return next + 1;
}
