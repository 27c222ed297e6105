import { box } from "../mp4/boxes.ts";
import { makeAudioEntry } from "../mp4/sample-entry.ts";
import { type AudioFrame, type AudioSyntax, frameIn } from "./audio-syntax.ts";
import { createBitReader } from "../nal/bits.ts";
import { frameChecksum } from "./flac.ts";

const headerLength = 8;

/** AC-3 and E-AC-3 (ETSI TS 102 366), distinguished by bsid. */
export const dolby: AudioSyntax = {
  firstByte: 0x0b,
  headerLength,
  frameAt(bytes, at, isLast) {
    if (at + headerLength > bytes.length) return isLast ? null : "incomplete";
    if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return null;
    const bsid = (bytes[at + 5] ?? 0) >> 3;
    if (bsid > 16) return null;
    return bsid > 10 ? readEac3Frame(bytes, at, isLast) : readAc3Frame(bytes.subarray(at, at + headerLength));
  },
  isIntact(frame) {
    for (let at = 0; at < frame.length;) {
      const size = readSyncframe(frame, at)?.size ?? frame.length;
      // The checksum counts all but the first two bytes (ETSI TS 102 366 §4.4.1.2, §E.1.3.4.2), and has the polynomial of that of FLAC.
      if (frameChecksum(frame.subarray(at + 2, at + size)) !== 0) return false;
      at += size;
    }
    return true;
  },
};

/** Returns the size of the syncframe at `at`, of which several may be one frame; `null`: there is none. */
export function syncframeSizeAt(bytes: Uint8Array, at: number): number | null {
  return readSyncframe(bytes, at)?.size ?? frameIn(dolby, bytes, at)?.size ?? null;
}

/** Sampling rates of AC-3 and E-AC-3 by fscod (ETSI TS 102 366 table 4.1). */
const sampleRates: readonly number[] = [48_000, 44_100, 32_000];
/** Full-range channels of AC-3 and E-AC-3 by acmod (table 4.3). */
const fullRangeChannels: readonly number[] = [2, 1, 2, 3, 3, 4, 4, 5];
/** Bit rates by half of frmsizecod, kbit/s (table 4.13). */
const bitRates: readonly number[] = [
  32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
];
const blocksPerSample = 6;
const samplesPerBlock = 256;

/** Reads syncinfo and the start of bsi (ETSI TS 102 366 §4.4) from eight bytes; `null` if they are invalid. */
function readAc3Frame(header: Uint8Array): AudioFrame | null {
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
  const fullRate = sampleRates[rateCode];
  if (bitRate === undefined || fullRate === undefined) return null;
  const samples = blocksPerSample * samplesPerBlock;
  const words = Math.floor((bitRate * 96_000) / fullRate);
  const sampleRate = fullRate >> Math.max(0, bsid - 8);
  const makeSampleEntry = (): Uint8Array => {
    const fields = (rateCode << 22) | (bsid << 17) | (bsmod << 14) | (acmod << 11) | (lfe << 10);
    const dac3 = Buffer.alloc(4);
    dac3.writeUInt32BE(((fields | ((sizeCode >> 1) << 5)) << 8) >>> 0, 0);
    const configuration = box("dac3", dac3.subarray(0, 3));
    const channels = (fullRangeChannels[acmod] ?? 0) + lfe;
    return makeAudioEntry({ type: "ac-3", configuration, channels, sampleRate });
  };
  const size = (words + (rateCode === 1 ? sizeCode & 1 : 0)) * 2;
  const key = `ac-3 ${rateCode} ${bsid} ${bsmod} ${acmod} ${lfe} ${sizeCode >> 1}`;
  return { size, headerSize: 0, sampleRate, samples, key, makeSampleEntry };
}

/** A syncframe of E-AC-3 (ETSI TS 102 366 §E.1.2). */
interface Syncframe {
  size: number;
  isDependent: boolean;
  substream: number;
  rateCode: number;
  sampleRate: number;
  blocks: number;
  acmod: number;
  lfe: number;
  bsid: number;
  /** chanmap of a dependent substream; 0: none. */
  channelMap: number;
}

const longestHeader = 16;
const maxSyncframes = 64;

/**
 * Returns the frame at `at`: six audio blocks of all substreams, which are one sample of an MP4 (§F.2).
 * For the other results see `AudioSyntax.frameAt`.
 */
function readEac3Frame(bytes: Uint8Array, at: number, isLast: boolean): AudioFrame | "incomplete" | null {
  const first = readSyncframe(bytes, at);
  if (!first || first.isDependent || first.substream !== 0) return null;
  const frames: [Syncframe, ...Syncframe[]] = [first];
  let { blocks } = first;
  let end = at + first.size;
  while (frames.length < maxSyncframes) {
    if (end + headerLength > bytes.length && !isLast) return "incomplete";
    const next = readSyncframe(bytes, end);
    if (!next) break;
    const isNextOfFirst = !next.isDependent && next.substream === 0;
    if (isNextOfFirst && blocks + next.blocks > blocksPerSample) break;
    if (isNextOfFirst) blocks += next.blocks;
    frames.push(next);
    end += next.size;
  }
  return describe(frames, end - at, blocks);
}

function readSyncframe(bytes: Uint8Array, at: number): Syncframe | null {
  if (at + headerLength > bytes.length) return null;
  if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return null;
  const bits = createBitReader(bytes.subarray(at + 2, at + longestHeader));
  const streamType = bits.read(2);
  const substream = bits.read(3);
  const size = (bits.read(11) + 1) * 2;
  const rateCode = bits.read(2);
  const second = bits.read(2);
  const isReduced = rateCode === 3;
  const fullRate = sampleRates[isReduced ? second : rateCode];
  const acmod = bits.read(3);
  const lfe = bits.read(1);
  const bsid = bits.read(5);
  if (fullRate === undefined || streamType === 3 || bsid <= 10 || bsid > 16) return null;
  if (size < headerLength) return null;
  for (let programs = acmod === 0 ? 2 : 1; programs > 0; programs--) {
    bits.skip(5);
    if (bits.read(1) === 1) bits.skip(8);
  }
  const isDependent = streamType === 1;
  const channelMap = isDependent && bits.read(1) === 1 ? bits.read(16) : 0;
  const sampleRate = isReduced ? fullRate / 2 : fullRate;
  const blocks = isReduced ? blocksPerSample : ([1, 2, 3, 6][second] ?? 6);
  const substreamFields = { isDependent, substream, channelMap };
  return { size, ...substreamFields, rateCode, sampleRate, blocks, acmod, lfe, bsid };
}

function describe(frames: readonly [Syncframe, ...Syncframe[]], size: number, blocks: number): AudioFrame {
  const [first] = frames;
  const samples = blocks * samplesPerBlock;
  const program = frames.filter(({ isDependent, substream }) => isDependent || substream === 0);
  const dependents = program.filter(({ isDependent }) => isDependent);
  const locations = dependents.reduce((all, { channelMap }) => all | toChanLoc(channelMap), 0);
  const { rateCode, sampleRate, acmod, lfe, bsid } = first;
  const makeSampleEntry = (): Uint8Array => {
    const count = new Set(dependents.map(({ substream }) => substream)).size;
    const dataRate = Math.min(0x1fff, Math.round((size * 8 * sampleRate) / samples / 1000));
    const head = [(rateCode << 6) | (bsid << 1), (acmod << 1) | lfe];
    const tail = count === 0 ? [0] : [(count << 1) | (locations >> 8), locations & 0xff];
    const fields = Buffer.from([dataRate >> 5, (dataRate & 31) << 3, ...head, ...tail]);
    const channels = (fullRangeChannels[acmod] ?? 0) + lfe;
    const configuration = box("dec3", fields);
    return makeAudioEntry({ type: "ec-3", configuration, channels, sampleRate });
  };
  const key = `ec-3 ${rateCode} ${sampleRate} ${bsid} ${acmod} ${lfe} ${dependents.length} ${locations}`;
  return { size, headerSize: 0, sampleRate, samples, key, makeSampleEntry };
}

/** Converts chanmap (§E.1.3.1.8) to chan_loc of `dec3` (§F.6.2.12), which has no bits for the first five. */
function toChanLoc(channelMap: number): number {
  const pairs = (channelMap >> 3) & 0xff;
  const secondLfe = (channelMap >> 1) & 1;
  return (pairs << 1) | secondLfe;
}
