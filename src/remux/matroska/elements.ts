/** An EBML element (RFC 8794 §5); all numbers are byte offsets in the buffer that has it. */
export interface Element {
  id: number;
  body: number;
  /** No later than the end of the buffer. */
  end: number;
  /** Its content is cut off, or its size unknown. */
  isCut: boolean;
}

/** Of one element; a header has dozens. */
const maxElements = 1_000;

/** Returns the first 1,000 elements from `start` to `end`; what comes after a damaged one is left out. */
export function readElements(bytes: Uint8Array, start: number, end: number): Element[] {
  const found: Element[] = [];
  for (let at = start; at < end && found.length < maxElements;) {
    const id = readVariableInt(bytes, at, end, 4);
    const size = id && readVariableInt(bytes, at + id.length, end, 8);
    if (!id || !size) break;
    const body = at + id.length + size.length;
    // All ones: the size is unknown (§6.2).
    const isUnknown = size.value === 2 ** (7 * size.length) - 1;
    const next = isUnknown ? Infinity : body + size.value;
    const marker = 2 ** (7 * id.length);
    found.push({ id: marker + id.value, body, end: Math.min(next, end), isCut: next > end });
    at = next;
  }
  return found;
}

/** Reads a variable-size integer (§4), without its marker; undefined if it is longer than allowed or cut off. */
function readVariableInt(bytes: Uint8Array, at: number, end: number, maxLength: number) {
  const first = bytes[at] ?? 0;
  const length = Math.clz32(first) - 23;
  if (length > maxLength || at + length > end) return undefined;
  let value = first & (0xff >> length);
  for (let i = 1; i < length; i++) value = value * 256 + (bytes[at + i] ?? 0);
  return { value, length };
}
