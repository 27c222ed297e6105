import { ascii, box, childrenOf, findChild, typeAt, u16, u32, viewOf } from "./boxes.ts";

/** Fields of an AudioSampleEntry (ISO/IEC 14496-12 §12.2.3). */
const [versionAt, bitsAt, fieldsEnd] = [16, 26, 36];
const littleEndian = 1;

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
  if (sampleEntry.length < fieldsEnd) return sampleEntry;
  const view = viewOf(sampleEntry);
  // Version 1 of QuickTime has further fields.
  const body = fieldsEnd + (view.getUint16(versionAt) === 1 ? 16 : 0);
  const entry = { type: typeAt(sampleEntry, 4), start: 0, body, end: sampleEntry.length };
  const config = entry.type.endsWith("pcm") ? findChild(sampleEntry, entry, "pcmC") : undefined;
  if (config === undefined || config.end - config.body < 6) return sampleEntry;
  const [flags, bits] = [view.getUint8(config.body + 4), view.getUint8(config.body + 5)];
  const type = quickTimeTypes.get(`${entry.type} ${bits}`);
  if (type === undefined) return sampleEntry;
  const fields = Buffer.from(sampleEntry.subarray(8, fieldsEnd));
  fields.writeUInt16BE(0, versionAt - 8);
  fields.writeUInt16BE(bits, bitsAt - 8);
  const others = childrenOf(sampleEntry, entry).filter((child) => child.type !== "pcmC");
  const kept = others.map(({ start, end }) => sampleEntry.subarray(start, end));
  const order = box("enda", u16(flags & littleEndian));
  const wave = box("wave", box("frma", ascii(type)), order, u32(8, 0));
  return box(type, fields, wave, ...kept);
}
