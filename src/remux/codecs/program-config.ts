import { createBitReader } from "./bits.ts";

/** A channel layout that the stream itself lists, since it has no number in the standard. */
export interface ProgramConfig {
  channels: number;
  /** The element's fields as binary digits, from element_instance_tag to before its byte alignment. */
  digits: string;
}

const elementId = 5;
const longest = 128;

/**
 * Returns the program_config_element (ISO/IEC 14496-3 §4.4.1.1, table 4.2) at the start of an AAC frame;
 * `null` if the frame starts with something else.
 */
export function readProgramConfig(frame: Uint8Array): ProgramConfig | null {
  const bits = createBitReader(frame.subarray(0, longest));
  if (bits.read(3) !== elementId) return null;
  const start = bits.position;
  bits.skip(4 + 2 + 4);
  const [front, side, back] = [bits.read(4), bits.read(4), bits.read(4)];
  const [lfe, data, coupling] = [bits.read(2), bits.read(3), bits.read(4)];
  for (const width of [4, 4, 3]) if (bits.read(1) === 1) bits.skip(width);
  let channels = lfe;
  for (let i = front + side + back; i > 0; i--) {
    channels += 1 + bits.read(1);
    bits.skip(4);
  }
  bits.skip(lfe * 4 + data * 4 + coupling * 5);
  if (bits.isOverrun) return null;
  return { channels, digits: digitsOf(frame, start, bits.position) };
}

/** Converts binary digits to bytes, with zeros at the end of the last one. */
export function packDigits(digits: string): Buffer {
  const bytes = digits.match(/.{1,8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte.padEnd(8, "0"), 2)));
}

export function toDigits(value: number, width: number): string {
  return value.toString(2).padStart(width, "0");
}

function digitsOf(bytes: Uint8Array, from: number, to: number): string {
  const all = Array.from(bytes.subarray(0, longest), (byte) => toDigits(byte, 8)).join("");
  return all.slice(from, to);
}
