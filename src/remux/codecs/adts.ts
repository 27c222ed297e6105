import type { AudioFrame, AudioSyntax } from "./audio-syntax.ts";
import { packDigits, type ProgramConfig, readProgramConfig, toDigits } from "./program-config.ts";
import { makeAudioEntry, makeEsds } from "./sample-entry.ts";

/** Sampling rates by index (ISO/IEC 14496-3 table 1.18). */
const rates: readonly number[] = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000,
  7350,
];
const aac = 0x40;
const samplesPerBlock = 1024;

/** AAC in ADTS frames (ISO/IEC 14496-3 §1.A.2.2). */
export const adts: AudioSyntax = {
  firstByte: 0xff,
  headerLength: 7,
  frameAt(bytes, at, isLast) {
    if (at + 7 > bytes.length) return isLast ? null : "incomplete";
    return readFrame(bytes, at);
  },
};

function readFrame(bytes: Uint8Array, at: number): AudioFrame | null {
  const [b0 = 0, b1 = 0, b2 = 0, b3 = 0, b4 = 0, b5 = 0, b6 = 0] = bytes.subarray(at, at + 7);
  if (b0 !== 0xff || (b1 & 0xf6) !== 0xf0) return null;
  const headerSize = b1 & 1 ? 7 : 9;
  const rateIndex = (b2 >> 2) & 15;
  const sampleRate = rates[rateIndex];
  const layout = ((b2 & 1) << 2) | (b3 >> 6);
  const size = ((b3 & 3) << 11) | (b4 << 3) | (b5 >> 5);
  if (sampleRate === undefined || size <= headerSize) return null;
  const objectType = (b2 >> 6) + 1;
  const base = toDigits(objectType, 5) + toDigits(rateIndex, 4) + toDigits(layout, 4);
  return {
    size,
    headerSize,
    sampleRate,
    samples: samplesPerBlock * ((b6 & 3) + 1),
    key: `aac ${objectType} ${rateIndex} ${layout}`,
    makeSampleEntry() {
      const speakers = layout === 0 ? readProgramConfig(bytes.subarray(at + headerSize)) : null;
      const channels = speakers?.channels ?? (layout === 7 ? 8 : layout);
      const configuration = makeEsds(aac, makeSpecific(base, speakers));
      return makeAudioEntry({ type: "mp4a", configuration, channels, sampleRate });
    },
  };
}

/** An AudioSpecificConfig (§1.6.2.1) with its GASpecificConfig (§4.4.1). */
function makeSpecific(base: string, speakers: ProgramConfig | null): Buffer {
  const general = `${base}000`;
  if (!speakers) return packDigits(general);
  const withoutComment = Buffer.from([0]);
  return Buffer.concat([packDigits(general + speakers.digits), withoutComment]);
}
