import { unescapeNal } from "./annex-b.ts";
import { type BitReader, createBitReader } from "./bits.ts";
import { isValidSize, readCrop, type SequenceFormat } from "./picture-size.ts";

export interface HevcSps extends SequenceFormat {
  /** The twelve bytes of general_profile_space … general_level_idc. */
  profile: Uint8Array;
  subLayers: number;
  /** sps_temporal_id_nesting_flag. */
  isNested: boolean;
}

const headBytes = 3;
const profileBytes = 12;

/** Reads a sequence parameter set (ISO/IEC 23008-2 §7.3.2.2.1); `null` if it is damaged. */
export function readHevcSps(unit: Uint8Array): HevcSps | null {
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
  return { id, profile, subLayers, isNested, chroma, lumaDepth, chromaDepth, width, height };
}

/** Skips the sub-layers in profile_tier_level (§7.3.3). */
function skipSubLayers(bits: BitReader, count: number): void {
  if (count === 0) return;
  const flags = Array.from({ length: count }, () => bits.read(2));
  bits.skip((8 - count) * 2);
  for (const flag of flags) bits.skip((flag & 2 ? 88 : 0) + (flag & 1 ? 8 : 0));
}
