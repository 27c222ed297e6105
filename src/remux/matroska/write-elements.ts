import { u64 } from "../mp4/boxes.ts";

/** Returns an element (RFC 8794 §5). */
export function element(id: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([unsigned(id), bytes < 0x7f ? Buffer.from([0x80 | bytes]) : longSize(bytes), ...parts]);
}

/** Returns the content of a text. */
export const text = (value: string): Uint8Array => Buffer.from(value);

/** Returns the content of an unsigned integer, and the bytes of an id. */
export function unsigned(value: number | bigint): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  const first = bytes.findIndex((byte) => byte !== 0);
  return bytes.subarray(first < 0 ? 7 : first);
}

/** Returns a size in eight bytes. */
export function longSize(value: number): Uint8Array {
  const bytes = u64(value);
  bytes[0] = 1;
  return bytes;
}
