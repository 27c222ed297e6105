import type { BitReader } from "../nal/bits.ts";

const maxShortTermSets = 64;
const maxPictures = 16;

/**
 * Skips what a sequence parameter set has between its bit depths and the VUI (ISO/IEC 23008-2 §7.3.2.2.1). Takes bounded
 * time; of a damaged set, `isOverrun` of the bits may be true then.
 */
export function skipCodingTools(bits: BitReader, subLayers: number): void {
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
