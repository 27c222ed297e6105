import { type BitReader, createBitReader } from "./bits.ts";
import { unescapeNal } from "./nal-units.ts";
import { isValidSize, readCrop, readPixelAspect, type SequenceFormat } from "./sequence-format.ts";

/** nal_unit_type (ISO/IEC 14496-10 table 7-1). */
export const avcType = { slice: 1, firstPartition: 2, idr: 5, sei: 6, sps: 7, pps: 8 } as const;

/** Returns the type of a NAL unit. */
export const avcTypeOf = (unit: Uint8Array): number => (unit[0] ?? 0) & 0x1f;

/** Other pictures may refer to the picture of a slice. */
export const isReference = (unit: Uint8Array): boolean => ((unit[0] ?? 0) & 0x60) !== 0;

export interface AvcSps extends SequenceFormat {
  /** profile_idc, constraint flags, level_idc. */
  profile: Uint8Array;
  /** The profile is one whose `avcC` ends with chroma format and bit depths. */
  isHigh: boolean;
  /** separate_colour_plane_flag. */
  isSeparate: boolean;
  /** Of `frame_num`. */
  frameNumBits: number;
  /** Of `pic_order_cnt_lsb`; `null`: slices do not have it. */
  orderBits: number | null;
  /** Slices may have other numbers instead (pic_order_cnt_type 1). */
  hasOrderDeltas: boolean;
  /** max_num_ref_frames. */
  referenceFrames: number;
  /** gaps_in_frame_num_value_allowed_flag. */
  hasGaps: boolean;
  /** Where that is in the unescaped unit, bits. */
  gapsAt: number;
  /** frame_mbs_only_flag: no picture is a field. */
  isFrameOnly: boolean;
  /** How long a field lasts, seconds; `null`: it is not stated. */
  fieldS: number | null;
}

const highProfiles = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);

/** Reads a sequence parameter set (ISO/IEC 14496-10 §7.3.2.1.1); `null` if it is damaged. */
export function readAvcSps(unit: Uint8Array): AvcSps | null {
  const payload = unescapeNal(unit.subarray(1, 1024));
  const profile = payload.subarray(0, 3);
  const bits = createBitReader(payload.subarray(3));
  const id = bits.readUnsigned();
  const isHigh = highProfiles.has(profile[0] ?? 0);
  const format = isHigh ? readFormat(bits) : { chroma: 1, lumaDepth: 0, chromaDepth: 0, isSeparate: false };
  const frameNumBits = bits.readUnsigned() + 4;
  const { orderBits, hasOrderDeltas } = readPictureOrder(bits);
  const referenceFrames = bits.readUnsigned();
  const gapsAt = 8 * (1 + profile.length) + bits.position;
  const hasGaps = bits.read(1) === 1;
  const columns = bits.readUnsigned() + 1;
  const rows = bits.readUnsigned() + 1;
  const isFrameOnly = bits.read(1) === 1;
  if (!isFrameOnly) bits.skip(1);
  bits.skip(1);
  const crop = readCrop(bits, format.isSeparate ? 0 : format.chroma);
  const width = columns * 16 - crop.across;
  const height = (rows * 16 - crop.down) * (isFrameOnly ? 1 : 2);
  const isValid = id < 32 && format.chroma < 4 && isValidSize(width, height);
  if (bits.isOverrun || !isValid) return null;
  const hasVui = bits.read(1) === 1;
  const pixelAspect = hasVui ? readPixelAspect(bits) : ([1, 1] as const);
  const fieldS = hasVui ? readTick(bits) : null;
  const numbers = { frameNumBits, orderBits, hasOrderDeltas, referenceFrames, hasGaps, gapsAt };
  return { id, profile, isHigh, ...format, ...numbers, isFrameOnly, width, height, pixelAspect, fieldS };
}

/** Reads the VUI (Annex E.1.1) from what comes after the shape of pixels to num_units_in_tick and time_scale; returns seconds. */
function readTick(bits: BitReader): number | null {
  const has = () => bits.read(1) === 1;
  // overscan_appropriate_flag.
  if (has()) bits.skip(1);
  // video_format, video_full_range_flag, and the description of colours.
  if (has()) {
    bits.skip(4);
    if (has()) bits.skip(24);
  }
  // Of chroma samples in both fields.
  if (has()) for (let i = 0; i < 2; i++) bits.readUnsigned();
  if (!has()) return null;
  const [units, scale] = [bits.read(32), bits.read(32)];
  return units > 0 && scale > 0 && !bits.isOverrun ? units / scale : null;
}

function readFormat(bits: BitReader) {
  const chroma = bits.readUnsigned();
  const isSeparate = chroma === 3 && bits.read(1) === 1;
  const lumaDepth = bits.readUnsigned() & 7;
  const chromaDepth = bits.readUnsigned() & 7;
  bits.skip(1);
  if (bits.read(1) === 1) skipScalingLists(bits, chroma === 3 ? 12 : 8);
  return { chroma, lumaDepth, chromaDepth, isSeparate };
}

function skipScalingLists(bits: BitReader, count: number): void {
  for (let i = 0; i < count; i++) {
    if (bits.read(1) === 0) continue;
    let last = 8;
    let next = 8;
    for (let k = i < 6 ? 16 : 64; k > 0; k--) {
      if (next !== 0) next = (last + bits.readSigned() + 256) & 0xff;
      if (next !== 0) last = next;
    }
  }
}

/** Reads what orders pictures. */
function readPictureOrder(bits: BitReader): Pick<AvcSps, "orderBits" | "hasOrderDeltas"> {
  const kind = bits.readUnsigned();
  if (kind === 0) return { orderBits: Math.min(bits.readUnsigned(), 12) + 4, hasOrderDeltas: false };
  if (kind !== 1) return { orderBits: null, hasOrderDeltas: false };
  bits.skip(1);
  bits.readSigned();
  bits.readSigned();
  const cycle = Math.min(bits.readUnsigned(), 255);
  for (let i = 0; i < cycle; i++) bits.readSigned();
  return { orderBits: null, hasOrderDeltas: true };
}
