import { avcType, avcTypeOf, isReference, readAvcSps } from "./avc-sps.ts";
import { createMarking } from "./avc-marking.ts";
import {
  type AvcSlices,
  type Field,
  finishSlice,
  type Marking,
  type MarkingCommand,
  readSliceMarking,
  setsAt,
  setsIn,
  type SliceNumbers,
  sliceTypes,
} from "./avc-slices.ts";
import { createBitWriter } from "./bits.ts";
import { escapeNal, unescapeNal } from "./nal-units.ts";

/** More than a slice header has up to the last number that is changed, and its emulation prevention. */
const maxHeaderBytes = 32;
/** More than commands for 16 references have. */
const maxMarkingBytes = 128;

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
 * Changes the NAL units of pictures in decode order so that they continue an IDR picture with one frame, after as many missing ones
 * (`withGapsAllowed`) as decoders keep. The first picture is no IDR picture and needs none before it. Ends at the next IDR picture, and
 * after one at which numbers start again (memory_management_control_operation 5). Other units stay.
 */
export function createRenumbering(slices: AvcSlices) {
  let current: ReturnType<typeof createNumbers> | undefined;
  let isOver = false;
  /** Numbers start again after this picture. */
  let isLast = false;
  let isEarlier = false;
  const isCounted = (numbers: SliceNumbers | null): numbers is SliceNumbers => {
    isOver ||= isLast && numbers?.isFirst === true;
    isLast ||= numbers?.isReset === true;
    return numbers !== null && !isOver;
  };
  return {
    change(unit: Buffer): Buffer {
      const unitType = avcTypeOf(unit);
      slices.take(unit);
      if (unitType === avcType.sps) return withGaps(unit);
      if (unitType !== avcType.slice && unitType !== avcType.idr) return unit;
      isEarlier = false;
      isOver ||= unitType === avcType.idr;
      const numbers = isOver ? null : slices.numbersOf(unit);
      if (!isCounted(numbers)) return unit;
      current ??= createNumbers(numbers);
      const changes = current.next(numbers);
      isOver = changes === null;
      isEarlier = changes?.isEarlier ?? false;
      if (changes === null) return unit;
      const renumbered = changed(unit, changes.fields);
      return changes.marking === null ? renumbered : withMarking(renumbered, changes.marking);
    },
    /** Whether the picture of the latest slice is shown before the first one. */
    get isEarlier(): boolean {
      return isEarlier;
    },
  };
}

/** Counts from the first picture on. */
function createNumbers(first: SliceNumbers) {
  const frames = 2 ** first.frame.bits;
  const missing = Math.min(first.referenceFrames, frames - 2);
  const orderBase = first.order.value - 2 ** (first.order.bits - 1) + 2;
  const references = createMarking(first.referenceFrames, missing + 1);
  const distanceOf = createOrder();
  let latest = { value: first.frame.value, number: missing + 1 };
  let commands: readonly MarkingCommand[] | null = null;
  return {
    /** Returns what changes in the slice; `null`: a frame before it is missing. */
    next(slice: SliceNumbers) {
      const { frame, order, marking, isFirst, isField } = slice;
      const step = modulo(frame.value - latest.value, frames);
      if (step > 1) return null;
      const number = latest.number + step;
      latest = { value: frame.value, number };
      const isEarlier = distanceOf(slice) < 0;
      if (isField) references.end();
      if (marking !== null && isFirst) {
        commands = marking.commands;
        if (isEarlier) references.leaveOut(number, commands);
        else commands = references.take(number, commands);
      }
      const fields = [
        { ...frame, value: modulo(number, frames) },
        { ...order, value: modulo(order.value - orderBase, 2 ** order.bits) },
      ];
      const isSame = marking === null || JSON.stringify(commands) === JSON.stringify(marking.commands);
      return { isEarlier, fields, marking: isSame ? null : { ...marking, commands } };
    },
  };
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by;

/** Compares pictures in decode order with the first of them: returns how much later it is shown (§8.2.1.1). */
function createOrder() {
  let reference: { value: number; distance: number } | undefined;
  return ({ order: { value, bits }, marking }: SliceNumbers): number => {
    reference ??= { value, distance: 0 };
    const half = 2 ** (bits - 1);
    const distance = reference.distance + modulo(value - reference.value + half, 2 * half) - half;
    if (marking !== null) reference = { value, distance };
    return distance;
  };
}

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

/** Returns a slice with other commands, which are not `null`. */
function withMarking(unit: Buffer, marking: Marking): Buffer {
  const payload = unescapeNal(unit);
  const writer = createBitWriter(payload.length + maxMarkingBytes);
  writer.copy(payload, 0, marking.start);
  writer.write(1, 1);
  for (const { operation, values } of marking.commands ?? [])
    for (const value of [operation, ...values]) writer.writeUnsigned(value);
  writer.writeUnsigned(0);
  return finishSlice(writer, payload, marking);
}

/**
 * Returns a slice of an intra frame of H.264, which is a reference and no IDR picture, as one of an IDR picture (ISO/IEC 14496-10
 * §7.3.3) that no other one refers to yet; `null`: it is another one.
 * @param id Differs from that of the IDR picture before.
 */
export function asIdrSlice(unit: Buffer, slices: AvcSlices, id: number): Buffer | null {
  const payload = unescapeNal(unit);
  const slice = slices.open(payload);
  const orderBits = slice?.sps.orderBits ?? null;
  if (slice === null || orderBits === null || slice.sliceType !== sliceTypes.i || !isReference(unit)) return null;
  const { bits, sps } = slice;
  const frameAt = bits.position;
  bits.skip(sps.frameNumBits);
  if (!sps.isFrameOnly && bits.read(1) === 1) return null;
  const idAt = bits.position;
  bits.skip(orderBits);
  const orderEnd = bits.position;
  const marking = readSliceMarking(slice, false);
  if (bits.isOverrun) return null;
  const writer = createBitWriter(payload.length + 16);
  writer.write((unit[0]! & 0xe0) | avcType.idr, 8);
  writer.copy(payload, 8, frameAt);
  writer.write(0, sps.frameNumBits);
  writer.copy(payload, frameAt + sps.frameNumBits, idAt);
  writer.writeUnsigned(id);
  writer.write(0, orderBits);
  writer.copy(payload, orderEnd, marking.start);
  // no_output_of_prior_pics_flag, long_term_reference_flag.
  writer.write(0, 2);
  return finishSlice(writer, payload, marking);
}
