import { type AvcSps, readAvcSps } from "./avc-sps.ts";
import { createBitReader } from "./bits.ts";
import { escapeNal, unescapeNal } from "./nal-units.ts";

const type = { slice: 1, idr: 5, sps: 7, pps: 8 } as const;
/** More than a slice header has up to its last number that is read, and its emulation prevention. */
const maxHeaderBytes = 32;

/** A number in the payload of a slice. */
interface Field {
  value: number;
  /** Its first bit. */
  at: number;
  bits: number;
}

/** What counts from the IDR picture before. */
interface SliceNumbers {
  frame: Field;
  order: Field;
  /** How many frames later ones can refer to. */
  referenceFrames: number;
}

/** What a picture parameter set (§7.3.2.2) says of slice headers. */
interface Pps {
  sequence: number;
  isCabac: boolean;
  hasBottomOrder: boolean;
  hasDeblocking: boolean;
  hasRedundant: boolean;
}

/** Returns the id of a picture parameter set, and what it says; `null` if macroblocks are in several groups, or it is damaged. */
function readPps(unit: Uint8Array): [id: number, pps: Pps | null] {
  const bits = createBitReader(unescapeNal(unit.subarray(1, maxHeaderBytes)));
  const [id, sequence] = [bits.readUnsigned(), bits.readUnsigned()];
  const flag = () => bits.read(1) === 1;
  const [isCabac, hasBottomOrder] = [flag(), flag()];
  if (bits.readUnsigned() > 0) return [id, null];
  // Default numbers of references, weighted prediction, quantizers.
  for (let i = 0; i < 2; i++) bits.readUnsigned();
  bits.skip(3);
  for (let i = 0; i < 3; i++) bits.readSigned();
  const hasDeblocking = flag();
  bits.skip(1);
  const pps = { sequence, isCabac, hasBottomOrder, hasDeblocking, hasRedundant: flag() };
  return [id, bits.isOverrun ? null : pps];
}

/** Reads slices of H.264 in decode order, with the parameter sets among them. */
export type AvcSlices = ReturnType<typeof createAvcSlices>;

/** @param configuration Content of an `avcC` box (ISO/IEC 14496-15 §5.3.3.1). */
export function createAvcSlices(configuration: Buffer) {
  const sequences = new Map<number, AvcSps>();
  const pictures = new Map<number, Pps | null>();
  const take = (unit: Uint8Array): void => {
    const unitType = (unit[0] ?? 0) & 0x1f;
    if (unitType === type.sps) {
      const sps = readAvcSps(unit);
      if (sps !== null) sequences.set(sps.id, sps);
    }
    if (unitType !== type.pps) return;
    pictures.set(...readPps(unit));
  };
  /** Returns the parameter sets of slices with this pic_parameter_set_id. */
  const setsOf = (id: number): { sps: AvcSps; pps: Pps } | undefined => {
    const pps = pictures.get(id) ?? undefined;
    const sps = sequences.get(pps?.sequence ?? -1);
    return pps && sps && { sps, pps };
  };
  for (const unit of setsIn(configuration)) take(unit);
  return {
    take,
    setsOf,
    /** Returns the numbers of a slice (§7.3.3) that is not of an IDR picture; `null`: they cannot be told, or are not all there is. */
    numbersOf(unit: Uint8Array): SliceNumbers | null {
      const bits = createBitReader(unescapeNal(unit.subarray(0, maxHeaderBytes)));
      bits.skip(8);
      // first_mb_in_slice, slice_type.
      bits.readUnsigned();
      bits.readUnsigned();
      const sps = setsOf(bits.readUnsigned())?.sps;
      if (sps === undefined || sps.hasGaps || sps.orderBits === null) return null;
      if (sps.isSeparate) bits.skip(2);
      const field = (count: number): Field => ({ at: bits.position, bits: count, value: bits.read(count) });
      const frame = field(sps.frameNumBits);
      // field_pic_flag, bottom_field_flag.
      if (!sps.isFrameOnly && bits.read(1) === 1) bits.skip(1);
      const order = field(sps.orderBits);
      return bits.isOverrun ? null : { frame, order, referenceFrames: sps.referenceFrames };
    },
  };
}

/** Where the number of its sequence parameter sets is in a configuration. */
const setsAt = 5;

/** Yields the parameter sets of a configuration, as far as they are whole. */
function* setsIn(configuration: Buffer): Generator<Buffer> {
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

/** Returns a configuration whose sequences allow that reference pictures are missing that nothing refers to (§8.2.5.2). */
export function withGapsAllowed(configuration: Buffer): Buffer {
  const count = (configuration[setsAt] ?? 0) & 0x1f;
  const sequences = [...setsIn(configuration)].slice(0, count);
  const rest = sequences.reduce((at, { length }) => at + 2 + length, setsAt + 1);
  const allowed = sequences.map(withGaps).flatMap((set) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(set.length);
    return [length, set];
  });
  return Buffer.concat([configuration.subarray(0, setsAt + 1), ...allowed, configuration.subarray(rest)]);
}

/** Far more than one has. */
const maxSequenceBytes = 16_384;

/** Returns a sequence parameter set that allows gaps; see `withGapsAllowed`. One that cannot be read stays as it is. */
export function withGaps(unit: Buffer): Buffer {
  const sps = unit.length > maxSequenceBytes ? null : readAvcSps(unit);
  return sps === null ? unit : changed(unit, [{ at: sps.gapsAt, bits: 1, value: 1 }]);
}

/**
 * Returns a function that changes the NAL units of pictures in decode order, the first of which is no IDR picture and needs none
 * before it, so that they continue an IDR picture with one frame, after as many missing ones (`withGapsAllowed`) as they may say that
 * they are no longer needed. It does so up to the next IDR picture, or one after which numbers start anew
 * (memory_management_control_operation 5). Others stay.
 */
export function createRenumbering(slices: AvcSlices): (unit: Buffer) => Buffer {
  let base: { frame: number; order: number } | undefined;
  let lastFrame = 0;
  let isOver = false;
  return (unit) => {
    const unitType = (unit[0] ?? 0) & 0x1f;
    slices.take(unit);
    if (unitType === type.sps) return withGaps(unit);
    isOver ||= unitType === type.idr;
    const numbers = unitType === type.slice && !isOver ? slices.numbersOf(unit) : null;
    if (numbers === null) return unit;
    const { frame, order, referenceFrames } = numbers;
    const frames = 2 ** frame.bits;
    const missing = Math.min(referenceFrames, frames - 2);
    base ??= { frame: frame.value - 1 - missing, order: order.value - 2 ** (order.bits - 1) + 2 };
    const number = modulo(frame.value - base.frame, frames);
    if (lastFrame > 0 && modulo(number - lastFrame, frames) > 1) {
      isOver = true;
      return unit;
    }
    lastFrame = number;
    return changed(unit, [
      { ...frame, value: number },
      { ...order, value: modulo(order.value - base.order, 2 ** order.bits) },
    ]);
  };
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by;

/** Returns the NAL unit with other numbers in its first bytes. */
function changed(unit: Buffer, fields: readonly Field[]): Buffer {
  const last = Math.max(...fields.map(({ at, bits }) => at + bits));
  // With emulation prevention, there is a byte more for each two.
  let end = Math.min(maxHeaderBytes + Math.ceil((last / 8) * 1.5), unit.length);
  // There the bytes after it do not depend on those before.
  while (end < unit.length && [0, 3].includes(unit[end - 1]!)) end += 1;
  const payload = unescapeNal(unit.subarray(0, end));
  for (const { at, bits, value } of fields) {
    for (let i = 0; i < bits; i += 1) {
      const mask = 0x80 >> ((at + i) & 7);
      const isSet = ((value >> (bits - 1 - i)) & 1) === 1;
      const place = (at + i) >> 3;
      payload[place] = isSet ? payload[place]! | mask : payload[place]! & ~mask;
    }
  }
  return Buffer.concat([escapeNal(payload), unit.subarray(end)]);
}
