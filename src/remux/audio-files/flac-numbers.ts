import { type FlacFrameHeader, frameChecksum, headerChecksum } from "../codecs/flac.ts";

const numberAt = 4;

/**
 * Returns a function that numbers the frames of a file (RFC 9639 §9.1.5) from 0 on, as players compute times from the numbers. What is damaged stays
 * so: its checksum is wrong afterwards, too. A frame that has its number is returned itself.
 */
export function createFlacNumbering(): (frame: Buffer, header: FlacFrameHeader) => Uint8Array {
  let frames = 0;
  let samples = 0;
  return (frame, { length, samples: own, number: stated }) => {
    const isVariable = (frame[1]! & 1) === 1;
    const counted = isVariable ? samples : frames;
    frames += 1;
    samples += own;
    if (stated === counted) return frame;
    const number = codedNumber(counted);
    const rest = frame.subarray(numberAt + codedLength(frame[numberAt]!), length - 1);
    const isRight = frameChecksum(frame) === 0 && headerChecksum(frame.subarray(0, length)) === 0;
    const head = [...frame.subarray(0, numberAt), ...number, ...rest];
    const numbered = Buffer.concat([
      Uint8Array.of(...head, headerChecksum(Uint8Array.from(head))),
      frame.subarray(length),
    ]);
    const checksum = frameChecksum(numbered.subarray(0, -2));
    numbered.writeUInt16BE(isRight ? checksum : checksum ^ 0xffff, numbered.length - 2);
    return numbered;
  };
}

const codedLength = (first: number): number => (first < 0x80 ? 1 : Math.clz32(~(first << 24)));

/** As UTF-8, of up to 36 bits. */
function codedNumber(number: number): number[] {
  if (number < 0x80) return [number];
  let length = 2;
  while (number >= 2 ** (5 * length + 1)) length += 1;
  const bytes: number[] = [];
  let left = number;
  while (bytes.length < length - 1) {
    bytes.unshift(0x80 | (left % 64));
    left = Math.floor(left / 64);
  }
  return [((0xff00 >> length) & 0xff) | left, ...bytes];
}
