import type { BitReader } from "./bits.ts";

/** Fields that sequence parameter sets of H.264 and HEVC have in common. */
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
  /** Width : height of a pixel. */
  pixelAspect: readonly [number, number];
}

const maxPixels = 65_535;

/** Whether a picture can have that many pixels. */
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

/** Width and height of a pixel by aspect_ratio_idc (ISO/IEC 14496-10 table E-1). */
const pixelWidths = [1, 1, 12, 10, 16, 40, 24, 20, 32, 80, 18, 15, 64, 160, 4, 3, 2];
const pixelHeights = [1, 1, 11, 11, 11, 33, 11, 11, 11, 33, 11, 11, 33, 99, 3, 2, 1];
const extendedSar = 255;

/** Reads the start of the VUI of a sequence parameter set; 1 : 1 if it does not state it. */
export function readPixelAspect(bits: BitReader): readonly [number, number] {
  if (bits.read(1) === 0) return [1, 1];
  const index = bits.read(8);
  const isListed = index !== extendedSar;
  const across = isListed ? (pixelWidths[index] ?? 1) : bits.read(16);
  const down = isListed ? (pixelHeights[index] ?? 1) : bits.read(16);
  const isValid = across > 0 && down > 0 && !bits.isOverrun;
  return isValid ? [across, down] : [1, 1];
}
