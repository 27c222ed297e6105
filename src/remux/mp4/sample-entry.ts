import { ascii, box, childrenOf, findChild, fullBox, typeAt, u16, u32, viewOf } from "./boxes.ts";

/** Types of sample entries of protected tracks (ISO/IEC 14496-12 §8.12, and those of FairPlay). */
const protectedEntries: ReadonlySet<string> = new Set("encv enca drmi drms".split(" "));

/** Whether a sample entry of this type says that its track is encrypted. */
export const isProtected = (type: string): boolean => protectedEntries.has(type);

interface VideoEntry {
  /** `avc1`, `hvc1`. */
  type: string;
  /** The box of the decoder configuration: `avcC`, `hvcC`. */
  configuration: Uint8Array;
  /** Pixels as coded, cropped. */
  width: number;
  height: number;
  /** Width : height of a pixel. */
  pixelAspect: readonly [number, number];
}

/** Returns a VisualSampleEntry (ISO/IEC 14496-12 §12.1.3), with `pasp` if pixels are not square. */
export function makeVideoEntry(entry: VideoEntry): Uint8Array {
  const fields = Buffer.alloc(78);
  fields.writeUInt16BE(1, 6);
  fields.writeUInt16BE(Math.min(entry.width, 0xffff), 24);
  fields.writeUInt16BE(Math.min(entry.height, 0xffff), 26);
  fields.writeUInt32BE(0x00480000, 28);
  fields.writeUInt32BE(0x00480000, 32);
  fields.writeUInt16BE(1, 40);
  fields.writeUInt16BE(0x18, 74);
  fields.writeInt16BE(-1, 76);
  const [across, down] = entry.pixelAspect;
  const aspect = Buffer.alloc(8);
  aspect.writeUInt32BE(across, 0);
  aspect.writeUInt32BE(down, 4);
  const isSquare = across === down;
  return box(entry.type, fields, entry.configuration, ...(isSquare ? [] : [box("pasp", aspect)]));
}

interface AudioEntry {
  /** `mp4a`, `ac-3`, `ec-3`. */
  type: string;
  /** The box of the decoder configuration: `esds`, `dac3`, `dec3`. */
  configuration: Uint8Array;
  channels: number;
  sampleRate: number;
}

/** Returns an AudioSampleEntry (ISO/IEC 14496-12 §12.2.3). */
export function makeAudioEntry(entry: AudioEntry): Uint8Array {
  const fields = Buffer.alloc(28);
  fields.writeUInt16BE(1, 6);
  fields.writeUInt16BE(entry.channels, 16);
  fields.writeUInt16BE(16, 18);
  fields.writeUInt16BE(entry.sampleRate > 0xffff ? 0 : entry.sampleRate, 24);
  return box(entry.type, fields, entry.configuration);
}

/**
 * Returns an `esds` box (ISO/IEC 14496-14 §6.7.2).
 * @param objectType See ISO/IEC 14496-1 §7.2.6.6.
 * @param specific The AudioSpecificConfig; empty if the codec has none.
 */
export function makeEsds(objectType: number, specific: Uint8Array): Uint8Array {
  const audioStream = 0x15;
  const decoder = Buffer.alloc(13);
  decoder[0] = objectType;
  decoder[1] = audioStream;
  const specifics = specific.length === 0 ? Buffer.alloc(0) : descriptor(5, specific);
  const stream = descriptor(
    3,
    Buffer.concat([
      Buffer.alloc(3),
      descriptor(4, Buffer.concat([decoder, specifics])),
      descriptor(6, Buffer.from([2])),
    ]),
  );
  return fullBox("esds", 0, 0, stream);
}

function descriptor(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const size = [0x80 | ((length >> 14) & 0x7f), 0x80 | ((length >> 7) & 0x7f), length & 0x7f];
  return Buffer.concat([Buffer.from([tag, 0x80, ...size]), content]);
}

export interface PixelSize {
  width: number;
  height: number;
}

const fieldsEnd = 86;

/** Returns the size in a visual sample entry (ISO/IEC 14496-12 §12.1.3); undefined if it has none. */
export function readCodedSize(sampleEntry: Uint8Array): PixelSize | undefined {
  if (sampleEntry.length < 36) return undefined;
  const view = viewOf(sampleEntry);
  return { width: view.getUint16(32), height: view.getUint16(34) };
}

/** Like `readCodedSize`, but the width is that of square pixels (`pasp`, §12.1.4). */
export function readDisplaySize(sampleEntry: Uint8Array): PixelSize | undefined {
  const size = readCodedSize(sampleEntry);
  if (size === undefined || size.width === 0 || size.height === 0) return undefined;
  const [across, down] = readPixelAspect(sampleEntry);
  return { width: Math.round((size.width * across) / down), height: size.height };
}

function readPixelAspect(sampleEntry: Uint8Array): [number, number] {
  const view = viewOf(sampleEntry);
  // What follows the fields need not be boxes: QuickTime ends an entry with four zeros.
  for (let at = fieldsEnd; at + 16 <= sampleEntry.length;) {
    const size = view.getUint32(at);
    if (size < 8 || at + size > sampleEntry.length) break;
    if (typeAt(sampleEntry, at + 4) === "pasp" && size >= 16) {
      const [across, down] = [view.getUint32(at + 8), view.getUint32(at + 12)];
      return across > 0 && down > 0 ? [across, down] : [1, 1];
    }
    at += size;
  }
  return [1, 1];
}

/** Fields of an AudioSampleEntry (ISO/IEC 14496-12 §12.2.3). */
const [versionAt, channelsAt, bitsAt, audioFieldsEnd] = [16, 24, 26, 36];
const littleEndian = 1;

/** A packet of audio: how many samples of a channel it has, and its size. */
export interface AudioPacket {
  samples: number;
  bytes: number;
  /** It is PCM, of which samples can be split and joined. */
  isPcm: boolean;
}

/** Sample entries of PCM that say its size in boxes or fields of their own; ISO/IEC 23003-5, version 2 of QuickTime's. */
const boxedPcm: ReadonlySet<string> = new Set(["ipcm", "fpcm", "lpcm"]);

/** Bytes of a sample in sample entries of QuickTime; `null`: its bits are in the entry. */
const sampleBytes: ReadonlyMap<string, number | null> = new Map([
  ["raw ", null],
  ["twos", null],
  ["sowt", null],
  ["in24", 3],
  ["in32", 4],
  ["fl32", 4],
  ["fl64", 8],
  ["ulaw", 1],
  ["alaw", 1],
]);

/** Returns the packets of uncompressed audio, or of audio in packets of one size, by a sample entry of QuickTime; undefined of all other audio. */
export function readAudioPacket(sampleEntry: Uint8Array): AudioPacket | undefined {
  if (sampleEntry.length < audioFieldsEnd) return undefined;
  const view = viewOf(sampleEntry);
  const version = view.getUint16(versionAt);
  const type = typeAt(sampleEntry, 4);
  if (boxedPcm.has(type)) return { samples: 1, bytes: 1, isPcm: true };
  const bytes = sampleBytes.get(type);
  if (version === 1 && sampleEntry.length >= audioFieldsEnd + 16) {
    const [samples, size] = [view.getUint32(audioFieldsEnd), view.getUint32(audioFieldsEnd + 8)];
    return samples > 0 && size > 0 ? { samples, bytes: size, isPcm: samples === 1 && bytes !== undefined } : undefined;
  }
  if (version !== 0 || bytes === undefined) return undefined;
  const ofChannel = bytes ?? Math.max(8, view.getUint16(bitsAt)) >> 3;
  return { samples: 1, bytes: ofChannel * view.getUint16(channelsAt), isPcm: true };
}

/** Turns the bytes of each number around, in place, that a header of Opus has from its pre-skip on (RFC 7845 §5.1, Opus in ISOBMFF §4.3.2). */
export function swapOpusNumbers(numbers: Buffer): void {
  numbers.subarray(0, 2).swap16();
  numbers.subarray(2, 6).swap32();
  numbers.subarray(6, 8).swap16();
}

/** Sample entries of QuickTime by the type of ISO/IEC 23003-5 and the bits of a sample. */
const quickTimeTypes = new Map([
  ["ipcm 24", "in24"],
  ["ipcm 32", "in32"],
  ["fpcm 32", "fl32"],
  ["fpcm 64", "fl64"],
]);

/**
 * Returns the sample entry of uncompressed audio as QuickTime has it, which most players read; they take that of ISO/IEC 23003-5
 * for 16 bits, whatever it says. Returns any other sample entry as it is.
 */
export function toQuickTimePcm(sampleEntry: Uint8Array): Uint8Array {
  if (sampleEntry.length < audioFieldsEnd) return sampleEntry;
  const view = viewOf(sampleEntry);
  // Version 1 of QuickTime has further fields.
  const body = audioFieldsEnd + (view.getUint16(versionAt) === 1 ? 16 : 0);
  const entry = { type: typeAt(sampleEntry, 4), start: 0, body, end: sampleEntry.length };
  const config = entry.type.endsWith("pcm") ? findChild(sampleEntry, entry, "pcmC") : undefined;
  if (config === undefined || config.end - config.body < 6) return sampleEntry;
  const [flags, bits] = [view.getUint8(config.body + 4), view.getUint8(config.body + 5)];
  const type = quickTimeTypes.get(`${entry.type} ${bits}`);
  if (type === undefined) return sampleEntry;
  const fields = Buffer.from(sampleEntry.subarray(8, audioFieldsEnd));
  fields.writeUInt16BE(0, versionAt - 8);
  fields.writeUInt16BE(bits, bitsAt - 8);
  const others = childrenOf(sampleEntry, entry).filter((child) => child.type !== "pcmC");
  const kept = others.map(({ start, end }) => sampleEntry.subarray(start, end));
  const order = box("enda", u16(flags & littleEndian));
  const wave = box("wave", box("frma", ascii(type)), order, u32(8, 0));
  return box(type, fields, wave, ...kept);
}

const unspecified = 2;

/**
 * Returns a sample entry of VP8 with a bit depth in its `vpcC` (VP Codec ISO Media File Format Binding §2.2), and without colours unless a
 * `colr` states them: mediabunny writes a depth of 0, and the colours of BT.709, which VP8 does not have. Returns any other one unchanged.
 */
export function completeVp8(sampleEntry: Uint8Array): Uint8Array {
  const entry = { type: typeAt(sampleEntry, 4), start: 0, body: fieldsEnd, end: sampleEntry.length };
  const config = entry.type === "vp08" ? findChild(sampleEntry, entry, "vpcC") : undefined;
  if (config === undefined || config.end - config.body < 10) return sampleEntry;
  const [depthAt, coloursAt] = [config.body + 6, config.body + 7];
  if (sampleEntry[depthAt]! >> 4 !== 0) return sampleEntry;
  const completed = Buffer.from(sampleEntry);
  completed[depthAt]! |= 8 << 4;
  const hasColours = findChild(sampleEntry, entry, "colr") !== undefined;
  return hasColours ? completed : completed.fill(unspecified, coloursAt, coloursAt + 3);
}

/** No audio has a higher rate, Hz. */
const maxRate = 768_000;

/**
 * Puts the bytes of the numbers of an `OpusSpecificBox` (Opus in ISOBMFF §4.3.2) in order, in place: GStreamer 1.22 writes the last byte first, so that
 * players leave out 0.3 s at the start. The rate shows it.
 */
export function orderOpusNumbers(entry: Buffer): Buffer {
  const at = entry.indexOf("dOps", 8, "latin1") + 4;
  if (entry.toString("latin1", 4, 8) !== "Opus" || at < 4 || at + 11 > entry.length) return entry;
  const numbers = entry.subarray(at + 2, at + 10);
  const rateAt = 2;
  if (numbers.readUInt32BE(rateAt) > maxRate && numbers.readUInt32LE(rateAt) <= maxRate) swapOpusNumbers(numbers);
  return entry;
}
