import type { AudioFrame } from "./audio-syntax.ts";
import { createBitReader } from "./bits.ts";
import { box } from "../mp4/boxes.ts";
import { makeAudioEntry } from "./sample-entry.ts";

/** Sampling rates of AC-3 and E-AC-3 by fscod (ETSI TS 102 366 table 4.1). */
export const dolbySampleRates: readonly number[] = [48_000, 44_100, 32_000];
/** Full-range channels of AC-3 and E-AC-3 by acmod (table 4.3). */
export const dolbyChannels: readonly number[] = [2, 1, 2, 3, 3, 4, 4, 5];
/** Bit rates by half of frmsizecod, kbit/s (table 4.13). */
const bitRates: readonly number[] = [
  32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
];
const samplesPerFrame = 1536;

/** Reads syncinfo and the start of bsi (ETSI TS 102 366 §4.4) from eight bytes; `null` if they are invalid. */
export function readAc3Frame(header: Uint8Array): AudioFrame | null {
  const bits = createBitReader(header.subarray(4));
  const rateCode = bits.read(2);
  const sizeCode = bits.read(6);
  const bsid = bits.read(5);
  const bsmod = bits.read(3);
  const acmod = bits.read(3);
  if (acmod > 1 && acmod % 2 === 1) bits.skip(2);
  if (acmod > 3) bits.skip(2);
  if (acmod === 2) bits.skip(2);
  const lfe = bits.read(1);
  const bitRate = bitRates[sizeCode >> 1];
  const fullRate = dolbySampleRates[rateCode];
  if (bitRate === undefined || fullRate === undefined) return null;
  const words = Math.floor((bitRate * 96_000) / fullRate);
  const sampleRate = fullRate >> Math.max(0, bsid - 8);
  const makeSampleEntry = (): Uint8Array => {
    const fields = (rateCode << 22) | (bsid << 17) | (bsmod << 14) | (acmod << 11) | (lfe << 10);
    const dac3 = Buffer.alloc(4);
    dac3.writeUInt32BE(((fields | ((sizeCode >> 1) << 5)) << 8) >>> 0, 0);
    const configuration = box("dac3", dac3.subarray(0, 3));
    const channels = (dolbyChannels[acmod] ?? 0) + lfe;
    return makeAudioEntry({ type: "ac-3", configuration, channels, sampleRate });
  };
  const size = (words + (rateCode === 1 ? sizeCode & 1 : 0)) * 2;
  const key = `ac-3 ${rateCode} ${bsid} ${bsmod} ${acmod} ${lfe} ${sizeCode >> 1}`;
  return { size, headerSize: 0, sampleRate, samples: samplesPerFrame, key, makeSampleEntry };
}
