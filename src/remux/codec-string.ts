import { findDecoderConfig, startOfDescriptor } from "./codec-name.ts";

/** Returns the codec (RFC 6381 §3.3) of a profile as `avcC` and Matroska's CodecPrivate have it in bytes 1 to 3. */
export function avcCodec(type: string, configuration: Uint8Array): string {
  const profile = Buffer.from(configuration.subarray(1, 4));
  return profile.length === 3 ? `${type}.${profile.toString("hex")}` : type;
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
