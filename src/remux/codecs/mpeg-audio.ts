import type { AudioFrame, AudioSyntax } from "./audio-syntax.ts";
import { makeAudioEntry, makeEsds } from "../mp4/sample-entry.ts";

/** Bit rates by index, kbit/s (ISO/IEC 11172-3 §2.4.2.3): MPEG-1 layers I, II, III. */
const rates1: readonly (readonly number[])[] = [
  [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
];
/** ISO/IEC 13818-3 §2.4.2.3: layer I, layers II and III. */
const rates2: readonly (readonly number[])[] = [
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
const sampleRates: readonly number[] = [44_100, 48_000, 32_000];

/** MPEG audio, layers I to III (ISO/IEC 11172-3 §2.4.1.3, 13818-3, and MPEG-2.5 at half its rates). */
export const mpegAudio: AudioSyntax = {
  firstByte: 0xff,
  headerLength: 4,
  frameAt(bytes, at, isLast) {
    if (at + 4 > bytes.length) return isLast ? null : "incomplete";
    return readFrame(bytes.subarray(at, at + 4));
  },
};

function readFrame(header: Uint8Array): AudioFrame | null {
  const [b0 = 0, b1 = 0, b2 = 0, b3 = 0] = header;
  const version = (b1 >> 3) & 3;
  const layer = 4 - ((b1 >> 1) & 3);
  if (b0 !== 0xff || b1 < 0xe0 || version === 1 || layer === 4) return null;
  const isFirst = version === 3;
  const bitRates = isFirst ? rates1[layer - 1] : rates2[layer === 1 ? 0 : 1];
  const bitRate = (bitRates?.[b2 >> 4] ?? 0) * 1000;
  const fullRate = sampleRates[(b2 >> 2) & 3];
  if (bitRate === 0 || fullRate === undefined) return null;
  const sampleRate = isFirst ? fullRate : fullRate / (version === 2 ? 2 : 4);
  const padding = (b2 >> 1) & 1;
  const samples = samplesOf(layer, isFirst);
  const slots = Math.floor((samples * bitRate) / 8 / sampleRate);
  const size = layer === 1 ? (Math.floor((12 * bitRate) / sampleRate) + padding) * 4 : slots + padding;
  const channels = b3 >> 6 === 3 ? 1 : 2;
  const configuration = () => makeEsds(isFirst ? 0x6b : 0x69, new Uint8Array());
  return {
    size,
    headerSize: 0,
    sampleRate,
    samples,
    key: `${version} ${layer} ${sampleRate} ${channels}`,
    makeSampleEntry: () => makeAudioEntry({ type: "mp4a", configuration: configuration(), channels, sampleRate }),
  };
}

function samplesOf(layer: number, isFirst: boolean): number {
  if (layer === 1) return 384;
  return layer === 3 && !isFirst ? 576 : 1152;
}
