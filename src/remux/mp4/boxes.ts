import { ServiceError } from "../../errors.ts";

/** A box (ISO/IEC 14496-12 §4.2) in a piece of a file; the numbers are byte positions in it. */
export interface Box {
  type: string;
  start: number;
  /** Where its content starts. */
  body: number;
  end: number;
}

/** A box of `type` around `parts`, below 4 GiB. */
export function box(type: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const size = parts.reduce((sum, part) => sum + part.length, 8);
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt32BE(size);
  bytes.write(type, 4, "latin1");
  let at = 8;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** A box with version and flags (§4.2.2). */
export function fullBox(
  type: string,
  version: number,
  flags: number,
  ...parts: readonly Uint8Array[]
): Uint8Array {
  return box(type, u32(version * 0x1000000 + flags), ...parts);
}

export const u8 = (...values: number[]): Uint8Array => Uint8Array.from(values);

export function u16(...values: number[]): Uint8Array {
  return Uint8Array.from(values.flatMap((value) => [value >>> 8, value]));
}

export function u32(...values: number[]): Uint8Array {
  return u32Table(Uint32Array.from(values));
}

/** The numbers, most significant byte first. */
export function u32Table(values: Uint32Array): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = viewOf(bytes);
  for (let i = 0; i < values.length; i++) view.setUint32(i * 4, values[i]!);
  return bytes;
}

/** Whole numbers of 0 or more, up to 2^53. */
export function u64(...values: number[]): Uint8Array {
  return u32(...values.flatMap((value) => [Math.floor(value / 2 ** 32), value]));
}

export const ascii = (text: string): Uint8Array => Buffer.from(text, "latin1");

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The boxes from `start` to `end`, in order.
 * @throws ServiceError `upstream_invalid` where one is cut off or smaller than its own header.
 */
export function* boxesIn(view: DataView, start: number, end: number): Generator<Box> {
  for (let at = start; at < end;) {
    const found = boxAt(view, at, end);
    yield found;
    at = found.end;
  }
}

/** The first box of `type` right in `parent`, whose children start at `from`. */
export function childOf(
  view: DataView,
  parent: Box,
  type: string,
  from = parent.body,
): Box | undefined {
  for (const found of boxesIn(view, from, parent.end)) if (found.type === type) return found;
  return undefined;
}

function boxAt(view: DataView, start: number, limit: number): Box {
  if (limit - start < 8) throw damaged(`${limit - start} bytes are too few for a box`);
  const type = typeAt(view, start + 4);
  const size = view.getUint32(start);
  if (size === 1 && limit - start < 16) throw damaged(`the box "${type}" is cut off in its size`);
  const body = start + (size === 1 ? 16 : 8);
  const whole = size === 1 ? sizeAt(view, start + 8) : size === 0 ? limit - start : size;
  if (whole < body - start || whole > limit - start) {
    throw damaged(
      `the box "${type}" says it has ${whole} bytes where ${body - start} to ${limit - start} can be`,
    );
  }
  return { type, start, body, end: start + whole };
}

export function sizeAt(view: DataView, at: number): number {
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}

/** A four-character code, what is not printable ASCII as "?". */
export function typeAt(view: DataView, at: number): string {
  const codes = [0, 1, 2, 3].map((i) => view.getUint8(at + i));
  return String.fromCharCode(...codes.map((code) => (code < 32 || code > 126 ? 63 : code)));
}

export function damaged(what: string, cause?: unknown): ServiceError {
  return new ServiceError("upstream_invalid", `the MP4 cannot be read: ${what}`, { cause });
}
