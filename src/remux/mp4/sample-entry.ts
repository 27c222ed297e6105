import { box, fullBox, typeAt, viewOf } from "./boxes.ts";

export interface VideoEntry {
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

export interface AudioEntry {
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
