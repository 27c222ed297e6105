import { type AvcSps, avcType, avcTypeOf, isReference, readAvcSps } from "./avc-sps.ts";
import { type BitReader, type BitWriter, createBitReader } from "./bits.ts";
import { escapeNal, trimZeros, unescapeNal } from "./nal-units.ts";

/** More than a picture parameter set has up to its last number that is read, and its emulation prevention. */
const maxPpsBytes = 32;
/** More than a slice header has: most of it may be weights of 64 references. */
export const maxSliceHeaderBytes = 2048;

/** A number in the payload of a slice. */
export interface Field {
  value: number;
  /** Its first bit. */
  at: number;
  bits: number;
}

/** A memory_management_control_operation (§7.4.3.3) with its numbers. */
export interface MarkingCommand {
  operation: number;
  values: readonly number[];
}

/** Which references stay once the picture of a slice is decoded (dec_ref_pic_marking, §7.3.3.3), and where that is in its payload, bits. */
export interface Marking {
  /** `null`: the oldest one goes if there are too many. */
  commands: readonly MarkingCommand[] | null;
  start: number;
  end: number;
  headerEnd: number;
  isCabac: boolean;
}

/** What counts from the IDR picture before. */
export interface SliceNumbers {
  frame: Field;
  order: Field;
  /** It is the first one of its picture. */
  isFirst: boolean;
  /** After its picture, numbers start again (memory_management_control_operation 5). */
  isReset: boolean;
  /** `null`: no other one refers to it. */
  marking: Marking | null;
  isField: boolean;
  /** How many frames later ones can refer to. */
  referenceFrames: number;
}

/** What a picture parameter set (§7.3.2.2) says of slice headers. */
interface Pps {
  sequence: number;
  isCabac: boolean;
  hasBottomOrder: boolean;
  /** How many references slices have by default, of both lists. */
  references: readonly [number, number];
  /** Of P slices, of B slices. */
  hasWeights: readonly [boolean, boolean];
  hasDeblocking: boolean;
  hasRedundant: boolean;
}

/** Returns the id of a picture parameter set, and what it says; `null` if macroblocks are in several groups, or it is damaged. */
function readPps(unit: Uint8Array): [id: number, pps: Pps | null] {
  const bits = createBitReader(unescapeNal(unit.subarray(1, maxPpsBytes)));
  const [id, sequence] = [bits.readUnsigned(), bits.readUnsigned()];
  const flag = () => bits.read(1) === 1;
  const [isCabac, hasBottomOrder] = [flag(), flag()];
  if (bits.readUnsigned() > 0) return [id, null];
  const references = [bits.readUnsigned() + 1, bits.readUnsigned() + 1] as const;
  const hasWeights = [flag(), bits.read(2) === 1] as const;
  // Quantizers.
  for (let i = 0; i < 3; i++) bits.readSigned();
  const hasDeblocking = flag();
  bits.skip(1);
  const pps = { sequence, isCabac, hasBottomOrder, references, hasWeights, hasDeblocking, hasRedundant: flag() };
  return [id, bits.isOverrun ? null : pps];
}

/** Follows the parameter sets of H.264, and opens slices by them. */
export function createAvcSets() {
  const sequences = new Map<number, AvcSps>();
  const pictures = new Map<number, Pps | null>();
  return {
    /** Takes a NAL unit, if it is a parameter set. */
    take(unit: Uint8Array): void {
      const unitType = avcTypeOf(unit);
      if (unitType === avcType.sps) {
        const sps = readAvcSps(unit);
        if (sps !== null) sequences.set(sps.id, sps);
      }
      if (unitType !== avcType.pps) return;
      const [id, pps] = readPps(unit);
      if (id < 256) pictures.set(id, pps);
    },
    /** Reads the header of a slice (§7.3.3) up to its frame_num; `null`: its parameter sets are missing. */
    open(payload: Uint8Array) {
      const bits = createBitReader(payload);
      bits.skip(8);
      const isFirst = bits.readUnsigned() === 0;
      const sliceType = bits.readUnsigned() % 5;
      const pps = pictures.get(bits.readUnsigned());
      const sps = pps && sequences.get(pps.sequence);
      if (!pps || !sps) return null;
      if (sps.isSeparate) bits.skip(2);
      return { bits, isFirst, sliceType, sps, pps };
    },
  };
}

/** Reads slices of H.264 in decode order, with the parameter sets among them. */
export type AvcSlices = ReturnType<typeof createAvcSlices>;

/** @param configuration Content of an `avcC` box (ISO/IEC 14496-15 §5.3.3.1). */
export function createAvcSlices(configuration: Buffer) {
  const sets = createAvcSets();
  for (const unit of setsIn(configuration)) sets.take(unit);
  return {
    ...sets,
    /** Returns whether a slice may refer to other frames, as far as its header can be read. */
    refersToOthers(unit: Uint8Array): boolean {
      const slice = sets.open(unescapeNal(unit.subarray(0, maxSliceHeaderBytes)));
      if (slice === null || slice.sliceType === sliceTypes.i || slice.sliceType === sliceTypes.si) return false;
      const { bits, sps } = slice;
      bits.skip(sps.frameNumBits);
      // The second field of a frame may refer to the first one only.
      return sps.isFrameOnly || bits.read(1) === 0;
    },
    /** Returns the numbers of a slice that is not of an IDR picture; `null`: they cannot be read, or are not all there is. */
    numbersOf(unit: Uint8Array): SliceNumbers | null {
      const slice = sets.open(unescapeNal(unit.subarray(0, maxSliceHeaderBytes)));
      if (slice === null || slice.sps.hasGaps || slice.sps.orderBits === null) return null;
      const { bits, isFirst, sps } = slice;
      const field = (count: number): Field => ({ at: bits.position, bits: count, value: bits.read(count) });
      const frame = field(sps.frameNumBits);
      const isField = !sps.isFrameOnly && bits.read(1) === 1;
      // bottom_field_flag.
      if (isField) bits.skip(1);
      const order = field(slice.sps.orderBits);
      if (bits.isOverrun) return null;
      const marking = isReference(unit) ? readSliceMarking(slice, isField) : null;
      const isReset = marking?.commands?.some(({ operation }) => operation === 5) ?? false;
      return { frame, order, isFirst, isReset, isField, marking, referenceFrames: sps.referenceFrames };
    },
  };
}

/** Where the number of its sequence parameter sets is in a configuration. */
export const setsAt = 5;

/** Yields the parameter sets of a configuration, as far as they are whole. */
export function* setsIn(configuration: Buffer): Generator<Buffer> {
  let at = setsAt;
  for (const mask of [0x1f, 0xff]) {
    let count = (configuration[at++] ?? 0) & mask;
    for (; count > 0 && at + 2 <= configuration.length; count -= 1) {
      const end = at + 2 + configuration.readUInt16BE(at);
      yield configuration.subarray(at + 2, end);
      at = end;
    }
  }
}

/** Values of slice_type, less 5 if all slices of the picture have it. */
export const sliceTypes = { p: 0, b: 1, i: 2, sp: 3, si: 4 };

type Slice = NonNullable<ReturnType<ReturnType<typeof createAvcSets>["open"]>>;

/** Reads a slice header from what comes after pic_order_cnt_lsb to its end. */
export function readSliceMarking(slice: Slice, isField: boolean): Marking {
  const { bits, pps } = slice;
  skipToMarking(slice, isField);
  const start = bits.position;
  const commands = readMarking(bits);
  const end = bits.position;
  skipToHeaderEnd(slice);
  const found = { start, end, headerEnd: bits.position, isCabac: pps.isCabac };
  return { commands: bits.isOverrun ? null : commands, ...found };
}

/** Skips what is in a slice header after dec_ref_pic_marking. */
function skipToHeaderEnd({ bits, sliceType, pps: { isCabac, hasDeblocking } }: Slice): void {
  const { i, si, sp } = sliceTypes;
  // cabac_init_idc, slice_qp_delta, sp_for_switch_flag, slice_qs_delta.
  if (isCabac && sliceType !== i && sliceType !== si) bits.readUnsigned();
  bits.readSigned();
  if (sliceType === sp) bits.skip(1);
  if (sliceType === sp || sliceType === si) bits.readSigned();
  // disable_deblocking_filter_idc and its offsets.
  if (hasDeblocking && bits.readUnsigned() !== 1) for (let k = 0; k < 2; k++) bits.readSigned();
}

/** Skips what is in a slice header between pic_order_cnt_lsb and dec_ref_pic_marking. */
function skipToMarking({ bits, sliceType, sps, pps }: Slice, isField: boolean): void {
  if (pps.hasBottomOrder && !isField) bits.readSigned();
  if (pps.hasRedundant) bits.readUnsigned();
  const isB = sliceType === sliceTypes.b;
  if (!isB && sliceType !== sliceTypes.p && sliceType !== sliceTypes.sp) return;
  // direct_spatial_mv_pred_flag.
  if (isB) bits.skip(1);
  const isOverridden = bits.read(1) === 1;
  const lists = isB ? [0, 1] : [0];
  const references = lists.map((list) => (isOverridden ? bits.readUnsigned() + 1 : pps.references[list]!));
  lists.forEach(() => skipListModification(bits));
  if (!pps.hasWeights[isB ? 1 : 0]) return;
  // Denominators.
  bits.readUnsigned();
  const hasChroma = !sps.isSeparate && sps.chroma !== 0;
  if (hasChroma) bits.readUnsigned();
  for (const count of references) {
    for (let i = 0; i < count && !bits.isOverrun; i++) {
      if (bits.read(1) === 1) for (let k = 0; k < 2; k++) bits.readSigned();
      if (hasChroma && bits.read(1) === 1) for (let k = 0; k < 4; k++) bits.readSigned();
    }
  }
}

/** Skips ref_pic_list_modification (§7.3.3.1) of a list. */
function skipListModification(bits: BitReader): void {
  const end = 3;
  if (bits.read(1) === 0) return;
  while (bits.readUnsigned() !== end && !bits.isOverrun) bits.readUnsigned();
}

/** Reads dec_ref_pic_marking (§7.3.3.3) of a picture that is no IDR picture; `null`: it has no commands. */
function readMarking(bits: BitReader): MarkingCommand[] | null {
  if (bits.read(1) === 0) return null;
  const commands: MarkingCommand[] = [];
  for (let operation = bits.readUnsigned(); operation !== 0 && !bits.isOverrun; operation = bits.readUnsigned()) {
    const count = operation === 5 ? 0 : operation === 3 ? 2 : 1;
    commands.push({ operation, values: Array.from({ length: count }, () => bits.readUnsigned()) });
  }
  return commands;
}

/** Returns the NAL unit of a slice of which all up to `end` has been written: the rest is that of `payload`. */
export function finishSlice(writer: BitWriter, payload: Buffer, { end, headerEnd, isCabac }: Marking): Buffer {
  writer.copy(payload, end, headerEnd);
  if (isCabac) writer.align();
  writer.copy(payload, isCabac ? 8 * Math.ceil(headerEnd / 8) : headerEnd, 8 * payload.length);
  const bytes = writer.bytes();
  return escapeNal(bytes.subarray(0, trimZeros(bytes, 0, bytes.length)));
}
