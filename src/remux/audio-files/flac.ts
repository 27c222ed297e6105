import { writeAt } from "../mp4/write/background-writes.ts";
import { readFlacBlocks, writeFlacStart } from "../tags/vorbis-comments.ts";
import { codedLength, type FlacFrameHeader, frameChecksum, headerChecksum, readFrameHeader } from "../codecs/flac.ts";
import { type AudioFile, type AudioFileTarget, type AudioTrack, damagedAudioError } from "./audio-file.ts";
import { type FileWindow, readAt } from "../open-file.ts";
import { endOfTags } from "../packed-audio/tags.ts";

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
      if (statesSamples(start)) return;
      start[samplesAt]! |= Math.floor(samples / 2 ** 32) & 15;
      start.writeUInt32BE(samples % 2 ** 32, samplesAt + 1);
      writeAt(fd, start, 0);
    },
  };
}

/** @param start A file up to the end of its STREAMINFO. */
const statesSamples = (start: Buffer): boolean =>
  start.length >= digestEnd && ((start[samplesAt]! & 15) !== 0 || start.readUInt32BE(samplesAt + 1) !== 0);

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

/** What looks like the header of a frame. */
interface Start {
  at: number;
  number: number;
  samples: number;
}

/** A frame whose end is looked for. */
interface OpenFrame extends Start {
  /** Checksum from its start on. */
  crc: number;
}

/** What looks like a header by chance is rarer. */
const maxOpen = 8;
const maxHeaderBytes = 16;
/** More are in no file but one that was made for that. */
const maxRejected = 1 << 20;

/**
 * Counts the frames of a FLAC file, and the places at which they are damaged, missing, doubled or out of order, by their numbers and
 * checksums (RFC 9639 §9); undefined of another file. What follows the start of the last frame is no such place, unless that has no end and the
 * file does not say how many samples it has; of a file with a million false headers, what follows them counts as one place.
 */
export function countFlacFrames(file: FileWindow): { frames: number; breaks: number } | undefined {
  const before = endOfTags(file, 0);
  const read = readFlacBlocks((at, length) => readAt(file, before + at, length));
  if (read === undefined) return undefined;
  const first = before + read.end;
  let [frames, breaks] = [0, 0];
  /** The last frame, and after it what may be the next one: its header may be damaged, or be within it by chance. */
  let open: OpenFrame[] = [];
  let added = first;
  for (const start of findStarts(file, first)) {
    if (start === undefined) return { frames, breaks: breaks + 1 };
    addBytes(file, added, start.at, open);
    added = start.at;
    const next = { ...start, crc: 0 };
    const [last] = open;
    const whole = open.find(({ crc }) => crc === 0);
    const isNext = last !== undefined && continues(last, start);
    const isRight = last === undefined ? start.at === first : whole === last && isNext;
    if (last === undefined || whole !== undefined || isNext) {
      frames += 1;
      if (!isRight) breaks += 1;
      open = [next];
    } else open = [last, ...open.slice(1).slice(-maxOpen), next];
  }
  addBytes(file, added, endOfAudio(file), open);
  const [last, ...others] = open;
  const isOther = last?.crc !== 0 && others.some(({ crc }) => crc === 0);
  const isCut = last !== undefined && last.crc !== 0 && !statesSamples(readAt(file, before, digestEnd));
  if (isOther || (isCut && !hasEnd(file, last.at))) breaks += 1;
  return { frames, breaks };
}

/** No frame is longer: 65,536 samples of 8 channels and 32 bits. */
const maxFrameBytes = 1 << 21;

/** Whether the checksum of the frame at `start` is right at any byte after it: what follows may be anything. */
function hasEnd(file: FileWindow, start: number): boolean {
  let crc = 0;
  for (let at = start; at < file.size && at - start < maxFrameBytes;) {
    const bytes = file.at(at);
    for (let i = 0; i < bytes.length; i += 1) {
      crc = frameChecksum(bytes.subarray(i, i + 1), crc);
      if (crc === 0 && at + i > start) return true;
    }
    at += bytes.length;
  }
  return file.size - start > maxFrameBytes;
}

/** Programs before FLAC 1.2 number samples without saying so. */
function continues({ number, samples }: Start, next: Start): boolean {
  return next.number === number + 1 || next.number === number + samples;
}

/** Yields all headers with right checksums from `from` on; undefined at last if there are too many others. */
function* findStarts(file: FileWindow, from: number): Generator<Start | undefined> {
  let rejected = 0;
  for (let at = from; at < file.size;) {
    const bytes = file.at(at);
    const isLast = at + bytes.length === file.size;
    const end = isLast ? bytes.length : bytes.length - maxHeaderBytes;
    const found = findSync(bytes, end);
    const start = found < end ? readStart(bytes.subarray(found), at + found) : undefined;
    at += Math.min(end, found + 1);
    if (start !== undefined) yield start;
    else if (found < end) rejected += 1;
    if (rejected > maxRejected) {
      yield undefined;
      return;
    }
  }
}

/** Returns where the first 15 bits of a header are in `bytes` before `end`; `end` if nowhere. */
function findSync(bytes: Buffer, end: number): number {
  let at = 0;
  while (at < end && !(bytes[at] === 0xff && bytes[at + 1]! >> 1 === 0x7c)) at += 1;
  return at;
}

function readStart(bytes: Buffer, at: number): Start | undefined {
  const header = readFrameHeader(bytes, 0);
  if (header === null || headerChecksum(bytes.subarray(0, header.length)) !== 0) return undefined;
  return { at, number: header.number, samples: header.samples };
}

/** Returns where an ID3v1 tag at the end of a file begins, or where the file ends. */
function endOfAudio(file: FileWindow): number {
  const tag = Math.max(0, file.size - 128);
  return file.at(tag).toString("latin1", 0, 3) === "TAG" ? tag : file.size;
}

function addBytes(file: FileWindow, from: number, to: number, frames: readonly OpenFrame[]): void {
  for (let at = from; at < to;) {
    const bytes = file.at(at).subarray(0, to - at);
    for (const frame of frames) frame.crc = frameChecksum(bytes, frame.crc);
    at += bytes.length;
  }
}
