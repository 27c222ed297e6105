import type { NumberSource } from "../mp4/read/number-source.ts";

export const ebmlId = 0x1a45dfa3;

/** An EBML element (RFC 8794 §5): where its content begins and ends, in the file or bytes that have it. */
export interface Element {
  id: number;
  body: number;
  /** May be after what is there; Infinity if the size is unknown (§6.2). */
  end: number;
}

/** Reads the head of the element at `start`, which must end by `limit`; undefined if there is none. */
export function readElement(source: NumberSource, start: number, limit: number): Element | undefined {
  const id = readVarInt(source, start, limit, 4);
  const size = id && readVarInt(source, id.end, limit, 8);
  if (id === undefined || size === undefined) return undefined;
  const isUnknown = size.value === 2 ** (7 * (size.end - id.end)) - 1;
  const marker = 2 ** (7 * (id.end - start));
  return { id: marker + id.value, body: size.end, end: isUnknown ? Infinity : size.end + size.value };
}

/** Reads a variable-size integer (§4), without its marker; undefined if it is longer than allowed or cut off. */
export function readVarInt(source: NumberSource, start: number, limit: number, maxLength: number) {
  if (start >= limit) return undefined;
  const first = source.u8(start);
  const end = start + Math.clz32(first) - 23;
  if (end - start > maxLength || end > limit) return undefined;
  let value = first & (0xff >> (end - start));
  for (let at = start + 1; at < end; at++) value = value * 256 + source.u8(at);
  return { value, end };
}
