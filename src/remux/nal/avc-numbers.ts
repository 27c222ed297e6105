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
}

/** Reads slices of H.264 in decode order, with the parameter sets among them. */
export type AvcSlices = ReturnType<typeof createAvcSlices>;

/** @param configuration Content of an `avcC` box (ISO/IEC 14496-15 §5.3.3.1). */
export function createAvcSlices(configuration: Buffer) {
  const sequences = new Map<number, AvcSps>();
  const pictures = new Map<number, number>();
  const take = (unit: Uint8Array): void => {
    const unitType = (unit[0] ?? 0) & 0x1f;
    if (unitType === type.sps) {
      const sps = readAvcSps(unit);
      if (sps !== null) sequences.set(sps.id, sps);
    }
    if (unitType !== type.pps) return;
    const bits = createBitReader(unescapeNal(unit.subarray(1, maxHeaderBytes)));
    pictures.set(bits.readUnsigned(), bits.readUnsigned());
  };
  for (const unit of setsIn(configuration)) take(unit);
  return {
    take,
    /** Returns the numbers of a slice (§7.3.3) that is not of an IDR picture; `null`: they cannot be told, or are not all there is. */
    numbersOf(unit: Uint8Array): SliceNumbers | null {
      const bits = createBitReader(unescapeNal(unit.subarray(0, maxHeaderBytes)));
      bits.skip(8);
      // first_mb_in_slice, slice_type.
      bits.readUnsigned();
      bits.readUnsigned();
      const sps = sequences.get(pictures.get(bits.readUnsigned()) ?? -1);
      if (sps === undefined || sps.hasGaps || sps.orderBits === null) return null;
      if (sps.isSeparate) bits.skip(2);
      const field = (count: number): Field => ({ at: bits.position, bits: count, value: bits.read(count) });
      const frame = field(sps.frameNumBits);
      // field_pic_flag, bottom_field_flag.
      if (!sps.isFrameOnly && bits.read(1) === 1) bits.skip(1);
      const order = field(sps.orderBits);
      return bits.isOverrun ? null : { frame, order };
    },
  };
}

/** Yields the parameter sets of a configuration, as far as they are whole. */
function* setsIn(configuration: Buffer): Generator<Buffer> {
  let at = 5;
  for (const mask of [0x1f, 0xff]) {
    let count = (configuration[at++] ?? 0) & mask;
    for (; count > 0 && at + 2 <= configuration.length; count -= 1) {
      const end = at + 2 + configuration.readUInt16BE(at);
      yield configuration.subarray(at + 2, end);
      at = end;
    }
  }
}

/**
 * Returns a function that changes the NAL units of pictures in decode order, the first of which is no IDR picture and needs none
 * before it, so that they continue an IDR picture with one frame. It does so up to the next IDR picture, or one after which numbers start anew
 * (memory_management_control_operation 5). Others stay.
 */
export function createRenumbering(slices: AvcSlices): (unit: Buffer) => Buffer {
  let base: { frame: number; order: number } | undefined;
  let lastFrame = 0;
  let isOver = false;
  return (unit) => {
    const unitType = (unit[0] ?? 0) & 0x1f;
    slices.take(unit);
    isOver ||= unitType === type.idr;
    const numbers = unitType === type.slice && !isOver ? slices.numbersOf(unit) : null;
    if (numbers === null) return unit;
    const { frame, order } = numbers;
    base ??= { frame: frame.value - 1, order: order.value - 2 ** (order.bits - 1) + 2 };
    const frames = 2 ** frame.bits;
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
  let end = Math.min(maxHeaderBytes, unit.length);
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
