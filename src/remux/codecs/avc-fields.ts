import { type AvcSps, readAvcSps } from "../nal/avc-sps.ts";
import { createBitReader } from "../nal/bits.ts";
import { type AccessUnit, nalUnitsWith, unescapeNal } from "../nal/nal-units.ts";
import { type FieldReader, nal } from "./video-syntax.ts";

const type = { slice: 1, firstPartition: 2, idr: 5, sps: 7, pps: 8 } as const;
/** More than the fields of a slice header have that are read, and their emulation prevention. */
const maxHeaderBytes = 24;

type FieldSps = Pick<AvcSps, "frameNumBits" | "isFrameOnly" | "isSeparate">;

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
  const sequences = new Map<number, FieldSps>();
  const pictures = new Map<number, number>();
  /** The unit before, if it is a first field. */
  let first: Field | null = null;
  return {
    next(unit) {
      for (const set of nalUnitsWith(unit, nal.parameters)) takeSet(set, sequences, pictures);
      const field = readField(unit, sequences, pictures);
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

function takeSet(unit: Buffer, sequences: Map<number, FieldSps>, pictures: Map<number, number>): void {
  const unitType = (unit[0] ?? 0) & 0x1f;
  if (unitType === type.sps) {
    const sps = readAvcSps(unit);
    if (sps !== null) sequences.set(sps.id, sps);
  }
  if (unitType !== type.pps) return;
  const bits = createBitReader(unescapeNal(unit.subarray(1, maxHeaderBytes)));
  const id = bits.readUnsigned();
  if (id < 256) pictures.set(id, bits.readUnsigned());
}

/** Reads the header of the first slice (§7.3.3) of a field; `null`: it is a frame, or its parameter sets are missing. */
function readField(
  { bytes, starts, ends, roles }: AccessUnit,
  sequences: ReadonlyMap<number, FieldSps>,
  pictures: ReadonlyMap<number, number>,
): Field | null {
  const i = starts.findIndex((start, at) => ((roles[at] ?? 0) & nal.picture) !== 0 && hasHeader(bytes[start] ?? 0));
  const start = starts[i];
  if (start === undefined) return null;
  const header = bytes[start] ?? 0;
  const end = Math.min(ends[i] ?? start, start + maxHeaderBytes);
  const bits = createBitReader(unescapeNal(bytes.subarray(start + 1, end)));
  // first_mb_in_slice, slice_type.
  bits.readUnsigned();
  bits.readUnsigned();
  const sequence = pictures.get(bits.readUnsigned()) ?? -1;
  const sps = sequences.get(sequence);
  if (sps === undefined || sps.isFrameOnly) return null;
  if (sps.isSeparate) bits.skip(2);
  const frameNum = bits.read(sps.frameNumBits);
  const isField = bits.read(1) === 1;
  if (!isField || bits.isOverrun) return null;
  const isBottom = bits.read(1) === 1;
  const idrPictureId = (header & 0x1f) === type.idr ? bits.readUnsigned() : null;
  return { sequence, frameNum, isBottom, isReference: (header & 0x60) !== 0, idrPictureId };
}

function hasHeader(header: number): boolean {
  const unitType = header & 0x1f;
  return unitType === type.slice || unitType === type.firstPartition || unitType === type.idr;
}
