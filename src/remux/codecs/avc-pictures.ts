import { createAvcSets, maxSliceHeaderBytes, readSliceMarking } from "../nal/avc-slices.ts";
import { avcType, avcTypeOf, isReference } from "../nal/avc-sps.ts";
import { type AccessUnit, nalUnitsWith, unescapeNal } from "../nal/nal-units.ts";
import { type DisplayOrder, nal, type PictureReader, type VideoSyntax } from "./video-syntax.ts";

/** Whether the NAL unit with this first byte has the header of a slice. */
export function hasHeader(first: number): boolean {
  const unitType = first & 0x1f;
  return unitType === avcType.slice || unitType === avcType.firstPartition || unitType === avcType.idr;
}

/** A coded picture, by the header of its first slice. */
interface CodedPicture {
  /** Its sequence parameter set. */
  sequence: number;
  frameNum: number;
  /** It is a field, not a frame. */
  isField: boolean;
  isBottom: boolean;
  isReference: boolean;
  /** `null`: not of an IDR picture. */
  idrPictureId: number | null;
  /** pic_order_cnt_lsb, and how many values it has; `null`: pictures are not ordered by it. */
  order: { low: number; range: number } | null;
  /** No picture of its sequence is a field. */
  isFrameOnly: boolean;
  /** How many values `frameNum` has; `null`: they may leave some out. */
  frameNumbers: number | null;
  /** Numbers may start again after it (memory_management_control_operation 5). */
  isReset: boolean;
  fieldS: number | null;
}

/**
 * Creates a reader of the pictures of H.264: of two fields in a row, which are coded pictures of their own, it says
 * whether they are a complementary field pair (ISO/IEC 14496-10 §3.30, §3.31).
 */
export function createAvcPictureReader(isRecoveryPoint: VideoSyntax["isRecoveryPoint"]): PictureReader {
  const sets = createAvcSets();
  /** The unit before, if it is a first field. */
  let first: CodedPicture | null = null;
  const orders = createOrders();
  const frames = createFrameNumbers();
  return {
    next(unit) {
      for (const set of nalUnitsWith(unit, nal.parameters)) sets.take(set);
      const picture = readPicture(unit, sets);
      const isSecond = first !== null && picture?.isField === true && isPair(first, picture);
      const order = orders.next(picture, isSecond);
      first = !isSecond && picture?.isField === true ? picture : null;
      const isEntry = nalUnitsWith(unit, nal.message).some(isRecoveryPoint);
      const isAfterLoss = frames.next(picture, isEntry);
      return { part: isSecond ? "second" : first === null ? "frame" : "first", order, isAfterLoss };
    },
    skip() {
      first = null;
      orders.skip();
      frames.skip();
    },
  };
}

/**
 * Follows frame_num (§7.4.3), which counts the frames that others may refer to: one that is missing leaves a gap. Other streams may be joined
 * at an IDR picture or a recovery point.
 */
function createFrameNumbers() {
  /** Of the latest reference; `null`: not known. */
  let latest: number | null = null;
  /** It may be 0 instead. */
  let isReset = false;
  return {
    /** Returns whether frames before the picture are missing; `isEntry`: it is a recovery point. */
    next(picture: CodedPicture | null, isEntry: boolean): boolean {
      if (picture === null || picture.frameNumbers === null) {
        latest = null;
        return false;
      }
      const { frameNum, frameNumbers, isReference: isKept, idrPictureId } = picture;
      const isKnown = latest !== null && idrPictureId === null && !isEntry && !(isReset && frameNum <= 1);
      const isNext = frameNum === latest || frameNum === ((latest ?? 0) + 1) % frameNumbers;
      // After a loss, a picture that is no reference has the number of the next one that is.
      if (isKept) latest = frameNum;
      else if (isKnown && !isNext) latest = (frameNum + frameNumbers - 1) % frameNumbers;
      if (isKept) ({ isReset } = picture);
      return isKnown && !isNext;
    },
    skip(): void {
      latest = null;
    },
  };
}

/** Counts pic_order_cnt (§8.2.1.1) from IDR pictures on. Where it starts again without one, its numbers are wrong. */
function createOrders() {
  let start = 0;
  /** Of the latest picture that others may refer to; `null`: not known. */
  let latest: number | null = null;
  /** Some encoders count frames, not fields. */
  let countsFrames = false;
  return {
    next(picture: CodedPicture | null, isSecond: boolean): DisplayOrder | null {
      if (picture !== null && picture.idrPictureId !== null && !isSecond) {
        start += 1;
        latest = 0;
      }
      if (picture === null || picture.order === null || latest === null) return (latest = null);
      const { low, range } = picture.order;
      const number = low + Math.round((latest - low) / range) * range;
      if (picture.isReference) latest = number;
      countsFrames ||= picture.isFrameOnly && number % 2 !== 0;
      return { start, number, stepS: picture.fieldS && picture.fieldS * (countsFrames ? 2 : 1) };
    },
    skip(): void {
      latest = null;
    },
  };
}

/**
 * Fields of one frame have its number and opposite parity, and either both or neither is a reference. Only the first one
 * is an IDR picture; some encoders make both of them one, with one idr_pic_id, which no two IDR pictures in a row have.
 */
function isPair(first: CodedPicture, second: CodedPicture): boolean {
  return (
    first.sequence === second.sequence &&
    first.frameNum === second.frameNum &&
    first.isBottom !== second.isBottom &&
    first.isReference === second.isReference &&
    (second.idrPictureId === null || second.idrPictureId === first.idrPictureId)
  );
}

/** Reads the header of the first slice (§7.3.3) of a picture; `null`: its parameter sets are missing. */
function readPicture(
  { bytes, starts, ends, roles }: AccessUnit,
  sets: ReturnType<typeof createAvcSets>,
): CodedPicture | null {
  const i = starts.findIndex((start, at) => ((roles[at] ?? 0) & nal.picture) !== 0 && hasHeader(bytes[start] ?? 0));
  const start = starts[i];
  if (start === undefined) return null;
  const unit = bytes.subarray(start, Math.min(ends[i] ?? start, start + maxSliceHeaderBytes));
  const slice = sets.open(unescapeNal(unit));
  if (slice === null) return null;
  const { bits, sps } = slice;
  const frameNum = bits.read(sps.frameNumBits);
  const isField = !sps.isFrameOnly && bits.read(1) === 1;
  const isBottom = isField && bits.read(1) === 1;
  const idrPictureId = avcTypeOf(unit) === avcType.idr ? bits.readUnsigned() : null;
  const order = sps.orderBits === null ? null : { low: bits.read(sps.orderBits), range: 2 ** sps.orderBits };
  if (bits.isOverrun) return null;
  const isKept = isReference(unit);
  const marking = isKept && idrPictureId === null ? readSliceMarking(slice, isField) : null;
  const isStated = !bits.isOverrun && !sps.hasOrderDeltas;
  const isReset = !isStated || marking?.commands?.some(({ operation }) => operation === 5) === true;
  const { id: sequence, isFrameOnly, fieldS } = sps;
  const frameNumbers = sps.hasGaps ? null : 2 ** sps.frameNumBits;
  const numbers = { frameNum, frameNumbers, idrPictureId, order, isReset };
  return { sequence, ...numbers, isField, isBottom, isReference: isKept, isFrameOnly, fieldS };
}
