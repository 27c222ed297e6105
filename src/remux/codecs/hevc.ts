import { unescapeNal } from "./annex-b.ts";
import { createBitReader } from "./bits.ts";
import { box } from "../mp4/boxes.ts";
import { readHevcSps } from "./hevc-sps.ts";
import { withLength } from "./parameter-sets.ts";
import { makeVideoEntry } from "./sample-entry.ts";
import { nal, type ParameterSet, type VideoSyntax } from "./video-syntax.ts";

const type = { vps: 32, sps: 33, pps: 34, delimiter: 35, filler: 38 } as const;
const setTypes = { video: type.vps, sequence: type.sps, picture: type.pps } as const;

export const hevc: VideoSyntax = {
  headerLength: 3,
  classify(bytes, at) {
    const isBaseLayer = ((bytes[at] ?? 0) & 1) === 0 && (bytes[at + 1] ?? 0) >> 3 === 0;
    const unitType = ((bytes[at] ?? 0) >> 1) & 0x3f;
    const role = roleOf(unitType);
    if (!isBaseLayer) return role & nal.filler;
    const isFirstOfPicture = unitType < 32 && ((bytes[at + 2] ?? 0) & 0x80) !== 0;
    return isFirstOfPicture ? role | nal.start : role;
  },
  isRecoveryPoint: () => false,
  identify(unit) {
    const unitType = ((unit[0] ?? 0) >> 1) & 0x3f;
    if (unitType === type.vps) return { level: "video", id: (unit[2] ?? 0) >> 4 };
    if (unitType === type.sps) {
      const sps = readHevcSps(unit);
      return sps && { level: "sequence", id: sps.id };
    }
    const id = createBitReader(unescapeNal(unit.subarray(2, 12))).readUnsigned();
    return id < 64 ? { level: "picture", id } : null;
  },
  describe(sets) {
    const latest = sets.findLast(({ level }) => level === "sequence");
    const sps = latest && readHevcSps(latest.unit);
    const lists = (["video", "sequence", "picture"] as const).map((level) =>
      sets.filter((set) => set.level === level),
    );
    if (!sps || lists.some((list) => list.length === 0)) return null;
    const { width, height } = sps;
    const layers = (sps.subLayers << 3) | (sps.isNested ? 4 : 0);
    const lengthBytesLess1 = 3;
    const configuration = box(
      "hvcC",
      Buffer.from([1, ...sps.profile, 0xf0, 0, 0xfc, 0xfc | sps.chroma]),
      Buffer.from([0xf8 | sps.lumaDepth, 0xf8 | sps.chromaDepth, 0, 0]),
      Buffer.from([layers | lengthBytesLess1, lists.length]),
      ...lists.map(makeArray),
    );
    const pixelAspect = [1, 1] as const;
    const entry = { type: "hvc1", configuration, width, height, pixelAspect };
    return { sampleEntry: makeVideoEntry(entry), width, height };
  },
};

/** Returns the role by nal_unit_type (ISO/IEC 23008-2 table 7-1, §7.4.2.4.4). */
function roleOf(unitType: number): number {
  if (unitType < 32) return unitType >= 16 && unitType < 24 ? nal.picture | nal.sync : nal.picture;
  if (unitType <= type.pps) return nal.start | nal.parameters;
  if (unitType === type.delimiter) return nal.start | nal.filler;
  if (unitType === type.filler) return nal.filler;
  const isPrefixSei = unitType === 39;
  const isReservedStart = (unitType >= 41 && unitType <= 44) || (unitType >= 48 && unitType <= 55);
  return isPrefixSei || isReservedStart ? nal.start : 0;
}

/** Returns an array of an HEVCDecoderConfigurationRecord (ISO/IEC 14496-15 §8.3.3.1). */
function makeArray(sets: readonly ParameterSet[]): Buffer {
  const isComplete = 0x80;
  const head = Buffer.alloc(3);
  head[0] = isComplete | setTypes[sets[0]?.level ?? "video"];
  head.writeUInt16BE(sets.length, 1);
  return Buffer.concat([head, ...sets.map(withLength)]);
}
