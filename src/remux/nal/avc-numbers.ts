import { readAvcSps } from "./avc-sps.ts";
import { type AvcSlices, type Field, setsAt, setsIn } from "./avc-slices.ts";
import { escapeNal, unescapeNal } from "./nal-units.ts";

const type = { slice: 1, idr: 5, sps: 7 } as const;
/** More than a slice header has up to the last number that is changed, and its emulation prevention. */
const maxHeaderBytes = 32;

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
  /** Numbers start anew after this picture. */
  let isLast = false;
  return (unit) => {
    const unitType = (unit[0] ?? 0) & 0x1f;
    slices.take(unit);
    if (unitType === type.sps) return withGaps(unit);
    isOver ||= unitType === type.idr;
    const numbers = unitType === type.slice && !isOver ? slices.numbersOf(unit) : null;
    if (numbers === null) return unit;
    const { frame, order, isFirst, isReset, referenceFrames } = numbers;
    isOver = isLast && isFirst;
    if (isOver) return unit;
    isLast ||= isReset;
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
