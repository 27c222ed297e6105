import type { BitReader } from "./bits.ts";

/** What sequence parameter sets of H.264 and HEVC state alike. */
export interface SequenceFormat {
  id: number;
  /** chroma_format_idc. */
  chroma: number;
  /** Bits beyond 8. */
  lumaDepth: number;
  chromaDepth: number;
  /** Pixels as coded, cropped. */
  width: number;
  height: number;
}

const maxPixels = 65_535;

export function isValidSize(width: number, height: number): boolean {
  return width > 0 && height > 0 && width <= maxPixels && height <= maxPixels;
}

/**
 * Reads the cropping of a sequence parameter set, its flag included (frame_crop_…_offset, conf_win_…_offset).
 * Returns the pixels cropped from width and height; `planes`: ChromaArrayType.
 */
export function readCrop(bits: BitReader, planes: number): { across: number; down: number } {
  if (bits.read(1) === 0) return { across: 0, down: 0 };
  const unitX = planes === 1 || planes === 2 ? 2 : 1;
  const unitY = planes === 1 ? 2 : 1;
  const across = (bits.readUnsigned() + bits.readUnsigned()) * unitX;
  const down = (bits.readUnsigned() + bits.readUnsigned()) * unitY;
  return { across, down };
}

/** Width : height of a pixel by aspect_ratio_idc (ISO/IEC 14496-10 table E-1). */
const known: readonly (readonly [number, number])[] = [
  [1, 1],
  [1, 1],
  [12, 11],
  [10, 11],
  [16, 11],
  [40, 33],
  [24, 11],
  [20, 11],
  [32, 11],
  [80, 33],
  [18, 11],
  [15, 11],
  [64, 33],
  [160, 99],
  [4, 3],
  [3, 2],
  [2, 1],
];
const stated = 255;

/** Reads the start of the VUI of a sequence parameter set, its flag included; 1 : 1 if it states none. */
export function readPixelAspect(bits: BitReader): readonly [number, number] {
  const hasVui = bits.read(1) === 1;
  if (!hasVui || bits.read(1) === 0) return [1, 1];
  const index = bits.read(8);
  const [across, down] =
    index === stated ? [bits.read(16), bits.read(16)] : (known[index] ?? [1, 1]);
  const isValid = across > 0 && down > 0 && !bits.isOverrun;
  return isValid ? [across, down] : [1, 1];
}
