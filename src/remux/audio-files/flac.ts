import { writeAt } from "../mp4/write/background-writes.ts";
import { readFlacBlocks, writeFlacStart } from "../tags/vorbis-comments.ts";
import { codedLength, type FlacFrameHeader, frameChecksum, headerChecksum, readFrameHeader } from "../codecs/flac.ts";
import { type AudioFile, type AudioFileTarget, type AudioTrack, damagedAudioError } from "./audio-file.ts";

/** In STREAMINFO (RFC 9639 §8.2), after the signature and a header: the sizes of blocks and frames, the rate, and 36 bits that count samples. */
const blockSizeAt = 8;
const frameSizeAt = 12;
const rateAt = 18;
const samplesAt = 21;
/** A digest of all samples is last. */
const digestEnd = 42;

/**
 * Opens a FLAC file; what its metadata say already is kept unless it is replaced. A number of samples that is unknown is
 * counted.
 * @throws ServiceError `upstream_invalid` if it has no STREAMINFO.
 */
export function openFlacFile(
  { configuration, delayS }: AudioTrack,
  { fd, additions, isCut }: AudioFileTarget,
): AudioFile {
  const read = readFlacBlocks((at, length) => configuration.subarray(at, at + length));
  const start = read && writeFlacStart(read.blocks, additions);
  if (start === undefined) throw damagedAudioError("its FLAC has no metadata");
  const blockSize = start.readUInt16BE(blockSizeAt);
  const rate = start.readUIntBE(rateAt, 3) >> 4;
  let position = start.length;
  let samples = 0;
  let isChanged = isCut;
  let hasEnded = false;
  const number = createFlacNumbering();
  writeAt(fd, start, 0);
  return {
    add(packet) {
      const frame = Buffer.from(packet);
      const header = readFrameHeader(frame, blockSize);
      if (hasEnded) throw damagedAudioError("only the last frame of FLAC may be shorter than the others");
      // Of blocks of one size, a number says how many samples come before it.
      hasEnded = header !== null && header.samples < blockSize && (frame[1]! & 1) === 0;
      const written = header === null ? frame : number(frame, header);
      isChanged ||= written !== frame;
      writeAt(fd, written, position);
      position += written.length;
      samples += header?.samples ?? 0;
      return (header?.samples ?? 0) / rate;
    },
    finish(trimmedOf) {
      const isTrimmed = delayS !== null || trimmedOf(samples / rate) > 0;
      if (isTrimmed) throw damagedAudioError("FLAC cannot say that a part of it is not presented");
      if (isChanged) {
        // Of the source, which has others.
        start[samplesAt]! &= 0xf0;
        start.fill(0, samplesAt + 1, digestEnd);
        start.fill(0, frameSizeAt, rateAt);
      }
      const isKnown = (start[samplesAt]! & 15) !== 0 || start.readUInt32BE(samplesAt + 1) !== 0;
      if (isKnown) return;
      start[samplesAt]! |= Math.floor(samples / 2 ** 32) & 15;
      start.writeUInt32BE(samples % 2 ** 32, samplesAt + 1);
      writeAt(fd, start, 0);
    },
  };
}

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
