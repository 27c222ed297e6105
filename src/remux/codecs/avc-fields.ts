import { createAvcSets } from "../nal/avc-slices.ts";
import { avcType, avcTypeOf, isReference } from "../nal/avc-sps.ts";
import { type AccessUnit, nalUnitsWith, unescapeNal } from "../nal/nal-units.ts";
import { type FieldReader, nal } from "./video-syntax.ts";

/** More than the fields of a slice header have that are read, and their emulation prevention. */
const maxHeaderBytes = 24;

/** A coded field, by its slice header. */
interface Field {
  /** Its sequence parameter set. */
  sequence: number;
  frameNum: number;
  isBottom: boolean;
  isReference: boolean;
  /** `null`: not of an IDR picture. */
  idrPictureId: number | null;
}

/**
 * Creates a reader of the fields of H.264: of two fields in a row, which are coded pictures of their own, it tells
 * whether they are a complementary field pair (ISO/IEC 14496-10 §3.30, §3.31).
 */
export function createFieldReader(): FieldReader {
  const sets = createAvcSets();
  /** The unit before, if it is a first field. */
  let first: Field | null = null;
  return {
    next(unit) {
      for (const set of nalUnitsWith(unit, nal.parameters)) sets.take(set);
      const field = readField(unit, sets);
      const isSecond = first !== null && field !== null && isPair(first, field);
      first = isSecond ? null : field;
      return isSecond ? "second" : field === null ? "frame" : "first";
    },
    skip() {
      first = null;
    },
  };
}

/**
 * Fields of one frame have its number and opposite parity, and either both or neither is a reference. Only the first one
 * is an IDR picture; some encoders make both of them one, with one idr_pic_id, which no two IDR pictures in a row have.
 */
function isPair(first: Field, second: Field): boolean {
  return (
    first.sequence === second.sequence &&
    first.frameNum === second.frameNum &&
    first.isBottom !== second.isBottom &&
    first.isReference === second.isReference &&
    (second.idrPictureId === null || second.idrPictureId === first.idrPictureId)
  );
}

/** Reads the header of the first slice (§7.3.3) of a field; `null`: it is a frame, or its parameter sets are missing. */
function readField({ bytes, starts, ends, roles }: AccessUnit, sets: ReturnType<typeof createAvcSets>): Field | null {
  const i = starts.findIndex((start, at) => ((roles[at] ?? 0) & nal.picture) !== 0 && hasHeader(bytes[start] ?? 0));
  const start = starts[i];
  if (start === undefined) return null;
  const unit = bytes.subarray(start, Math.min(ends[i] ?? start, start + 1 + maxHeaderBytes));
  const slice = sets.open(unescapeNal(unit));
  if (slice === null || slice.sps.isFrameOnly) return null;
  const { bits, sps } = slice;
  const frameNum = bits.read(sps.frameNumBits);
  const isField = bits.read(1) === 1;
  if (!isField || bits.isOverrun) return null;
  const isBottom = bits.read(1) === 1;
  const idrPictureId = avcTypeOf(unit) === avcType.idr ? bits.readUnsigned() : null;
  return { sequence: sps.id, frameNum, isBottom, isReference: isReference(unit), idrPictureId };
}

function hasHeader(header: number): boolean {
  const unitType = header & 0x1f;
  return unitType === avcType.slice || unitType === avcType.firstPartition || unitType === avcType.idr;
}
