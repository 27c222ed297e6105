import { box } from "../mp4/boxes.ts";
import { type BitReader, createBitReader } from "../nal/bits.ts";
import { unescapeNal } from "../nal/nal-units.ts";
import { isValidSize, readCrop, readPixelAspect, type SequenceFormat } from "../nal/sequence-format.ts";
import { describeVideo, nal, type ParameterSet, type VideoSyntax, withLength } from "./video-syntax.ts";

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
    const lists = (["video", "sequence", "picture"] as const).map((level) => sets.filter((set) => set.level === level));
    if (!sps || lists.some((list) => list.length === 0)) return null;
    const layers = (sps.subLayers << 3) | (sps.isNested ? 4 : 0);
    const lengthBytesLess1 = 3;
    const configuration = box(
      "hvcC",
      Buffer.from([1, ...sps.profile, 0xf0, 0, 0xfc, 0xfc | sps.chroma]),
      Buffer.from([0xf8 | sps.lumaDepth, 0xf8 | sps.chromaDepth, 0, 0]),
      Buffer.from([layers | lengthBytesLess1, lists.length]),
      ...lists.map(makeArray),
    );
    return describeVideo("hvc1", configuration, sps);
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

interface HevcSps extends SequenceFormat {
  /** The twelve bytes of general_profile_space … general_level_idc. */
  profile: Uint8Array;
  subLayers: number;
  /** sps_temporal_id_nesting_flag. */
  isNested: boolean;
}

const headBytes = 3;
const profileBytes = 12;

/** Reads a sequence parameter set (ISO/IEC 23008-2 §7.3.2.2.1); `null` if it is damaged. */
function readHevcSps(unit: Uint8Array): HevcSps | null {
  const payload = unescapeNal(unit.subarray(0, 1024));
  const head = payload[headBytes - 1] ?? 0;
  const subLayers = ((head >> 1) & 7) + 1;
  const profile = payload.subarray(headBytes, headBytes + profileBytes);
  const bits = createBitReader(payload.subarray(headBytes + profileBytes));
  skipSubLayers(bits, subLayers - 1);
  const id = bits.readUnsigned();
  const chroma = bits.readUnsigned();
  const isSeparate = chroma === 3 && bits.read(1) === 1;
  const codedWidth = bits.readUnsigned();
  const codedHeight = bits.readUnsigned();
  const crop = readCrop(bits, isSeparate ? 0 : chroma);
  const lumaDepth = bits.readUnsigned() & 7;
  const chromaDepth = bits.readUnsigned() & 7;
  const width = codedWidth - crop.across;
  const height = codedHeight - crop.down;
  const isValid = id < 16 && chroma < 4 && isValidSize(width, height);
  if (bits.isOverrun || !isValid) return null;
  const isNested = (head & 1) === 1;
  skipCodingTools(bits, subLayers);
  const hasVui = bits.read(1) === 1;
  const pixelAspect = hasVui ? readPixelAspect(bits) : ([1, 1] as const);
  return { id, profile, subLayers, isNested, chroma, lumaDepth, chromaDepth, width, height, pixelAspect };
}

/** Skips the sub-layers in profile_tier_level (§7.3.3). */
function skipSubLayers(bits: BitReader, count: number): void {
  if (count === 0) return;
  const flags = Array.from({ length: count }, () => bits.read(2));
  bits.skip((8 - count) * 2);
  for (const flag of flags) bits.skip((flag & 2 ? 88 : 0) + (flag & 1 ? 8 : 0));
}

const maxShortTermSets = 64;
const maxPictures = 16;

/**
 * Skips what a sequence parameter set has between its bit depths and the VUI (ISO/IEC 23008-2 §7.3.2.2.1). Takes bounded
 * time; of a damaged set, `isOverrun` of the bits may be true then.
 */
function skipCodingTools(bits: BitReader, subLayers: number): void {
  const pictureOrderBits = bits.readUnsigned() + 4;
  const ordered = bits.read(1) === 1 ? subLayers : 1;
  skipNumbers(bits, 3 * ordered);
  // Sizes of blocks and depths of their trees.
  skipNumbers(bits, 6);
  const hasScalingLists = bits.read(1) === 1 && bits.read(1) === 1;
  if (hasScalingLists) skipScalingLists(bits);
  bits.skip(2);
  if (bits.read(1) === 1) {
    bits.skip(8);
    skipNumbers(bits, 2);
    bits.skip(1);
  }
  skipShortTermSets(bits);
  if (bits.read(1) === 1) {
    const longTerm = Math.min(bits.readUnsigned(), 32);
    bits.skip(longTerm * (Math.min(pictureOrderBits, 16) + 1));
  }
  bits.skip(2);
}

function skipNumbers(bits: BitReader, count: number): void {
  for (let i = 0; i < count; i++) bits.readUnsigned();
}

/** §7.3.4. */
function skipScalingLists(bits: BitReader): void {
  for (let size = 0; size < 4; size++) {
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1) {
      if (bits.read(1) === 0) {
        bits.readUnsigned();
        continue;
      }
      if (size > 1) bits.readSigned();
      for (let i = Math.min(64, 16 << (2 * size)); i > 0; i--) bits.readSigned();
    }
  }
}

/** §7.3.7. */
function skipShortTermSets(bits: BitReader): void {
  const count = Math.min(bits.readUnsigned(), maxShortTermSets);
  let pictures = 0;
  for (let i = 0; i < count && !bits.isOverrun; i++) pictures = skipShortTermSet(bits, i, pictures);
}

/** @param before How many pictures the set before has. Returns how many this one has. */
function skipShortTermSet(bits: BitReader, index: number, before: number): number {
  const isPredicted = index > 0 && bits.read(1) === 1;
  if (isPredicted) {
    bits.skip(1);
    bits.readUnsigned();
    let pictures = 0;
    for (let i = 0; i <= before; i++) {
      const isUsed = bits.read(1) === 1;
      if (isUsed || bits.read(1) === 1) pictures += 1;
    }
    return Math.min(pictures, maxPictures);
  }
  const pictures = Math.min(bits.readUnsigned(), maxPictures) + Math.min(bits.readUnsigned(), maxPictures);
  for (let i = 0; i < pictures; i++) {
    bits.readUnsigned();
    bits.skip(1);
  }
  return Math.min(pictures, maxPictures);
}
