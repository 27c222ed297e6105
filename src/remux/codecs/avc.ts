import { box } from "../mp4/boxes.ts";
import { createAvcSets } from "../nal/avc-slices.ts";
import { avcType, avcTypeOf, isReference, readAvcSps } from "../nal/avc-sps.ts";
import { createBitReader } from "../nal/bits.ts";
import { type AccessUnit, nalUnitsWith, unescapeNal } from "../nal/nal-units.ts";
import {
  describeVideo,
  type DisplayOrder,
  nal,
  type PictureReader,
  type VideoSyntax,
  withLength,
} from "./video-syntax.ts";

/** Roles by nal_unit_type (ISO/IEC 14496-10 table 7-1, §7.4.1.2.3). */
const rolesByType: readonly number[] = [
  0, // unspecified
  nal.picture,
  nal.picture, // data partitions: A
  nal.picture,
  nal.picture,
  nal.picture | nal.sync,
  nal.start | nal.message,
  nal.start | nal.parameters,
  nal.start | nal.parameters,
  nal.start | nal.filler, // access unit delimiter
  0, // end of sequence
  0, // end of stream
  nal.filler,
  0,
  0, // prefix: before every slice of a scalable stream
  nal.start,
  nal.start,
  nal.start,
  nal.start,
];

export const avc: VideoSyntax = {
  headerLength: 2,
  createPictureReader,
  classify(bytes, at) {
    const unitType = (bytes[at] ?? 0) & 0x1f;
    const role = rolesByType[unitType] ?? 0;
    const isFirstOfPicture = hasHeader(bytes[at] ?? 0) && ((bytes[at + 1] ?? 0) & 0x80) !== 0;
    return isFirstOfPicture ? role | nal.start : role;
  },
  isRecoveryPoint(unit) {
    const recoveryPoint = 6;
    return hasMessage(unescapeNal(unit.subarray(1)), recoveryPoint);
  },
  identify(unit) {
    if (avcTypeOf(unit) === avcType.sps) {
      const sps = readAvcSps(unit);
      return sps && { level: "sequence", id: sps.id };
    }
    const id = createBitReader(unescapeNal(unit.subarray(1, 12))).readUnsigned();
    return id < 256 ? { level: "picture", id } : null;
  },
  describe(sets) {
    const sequences = sets.filter(({ level }) => level === "sequence").slice(-31);
    const pictures = sets.filter(({ level }) => level === "picture").slice(-255);
    const latest = sequences.at(-1);
    const sps = latest && readAvcSps(latest.unit);
    if (!sps || pictures.length === 0) return null;
    const configuration = box(
      "avcC",
      Buffer.from([1, ...sps.profile, 0xff, 0xe0 | sequences.length]),
      ...sequences.map(withLength),
      Buffer.from([pictures.length]),
      ...pictures.map(withLength),
      ...(sps.isHigh ? [Buffer.from([0xfc | sps.chroma, 0xf8 | sps.lumaDepth, 0xf8 | sps.chromaDepth, 0])] : []),
    );
    return describeVideo("avc1", configuration, sps);
  },
};

/** Whether the NAL unit with this first byte has the header of a slice. */
function hasHeader(first: number): boolean {
  const unitType = first & 0x1f;
  return unitType === avcType.slice || unitType === avcType.firstPartition || unitType === avcType.idr;
}

/** Returns whether an SEI payload (ISO/IEC 14496-10 §7.3.2.3) has a message of type `wanted`. */
function hasMessage(payload: Uint8Array, wanted: number): boolean {
  let at = 0;
  const readNumber = (): number => {
    let value = 0;
    while (payload[at] === 0xff) {
      value += 0xff;
      at++;
    }
    return value + (payload[at++] ?? 0);
  };
  const stopBit = 1;
  while (at + stopBit < payload.length) {
    const payloadType = readNumber();
    const payloadSize = readNumber();
    if (payloadType === wanted) return true;
    at += payloadSize;
  }
  return false;
}

/** More than the fields of a slice header have that are read, and their emulation prevention. */
const maxHeaderBytes = 24;

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
  fieldS: number | null;
}

/**
 * Creates a reader of the pictures of H.264: of two fields in a row, which are coded pictures of their own, it says
 * whether they are a complementary field pair (ISO/IEC 14496-10 §3.30, §3.31).
 */
function createPictureReader(): PictureReader {
  const sets = createAvcSets();
  /** The unit before, if it is a first field. */
  let first: CodedPicture | null = null;
  const orders = createOrders();
  return {
    next(unit) {
      for (const set of nalUnitsWith(unit, nal.parameters)) sets.take(set);
      const picture = readPicture(unit, sets);
      const isSecond = first !== null && picture?.isField === true && isPair(first, picture);
      const order = orders.next(picture, isSecond);
      first = !isSecond && picture?.isField === true ? picture : null;
      return { part: isSecond ? "second" : first === null ? "frame" : "first", order };
    },
    skip() {
      first = null;
      orders.skip();
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
  const unit = bytes.subarray(start, Math.min(ends[i] ?? start, start + 1 + maxHeaderBytes));
  const slice = sets.open(unescapeNal(unit));
  if (slice === null) return null;
  const { bits, sps } = slice;
  const frameNum = bits.read(sps.frameNumBits);
  const isField = !sps.isFrameOnly && bits.read(1) === 1;
  const isBottom = isField && bits.read(1) === 1;
  const idrPictureId = avcTypeOf(unit) === avcType.idr ? bits.readUnsigned() : null;
  const order = sps.orderBits === null ? null : { low: bits.read(sps.orderBits), range: 2 ** sps.orderBits };
  if (bits.isOverrun) return null;
  const { id: sequence, isFrameOnly, fieldS } = sps;
  const numbers = { frameNum, idrPictureId, order };
  return { sequence, ...numbers, isField, isBottom, isReference: isReference(unit), isFrameOnly, fieldS };
}
