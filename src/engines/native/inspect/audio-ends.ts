import { adts } from "../../../remux/codecs/adts.ts";
import { frameIn, isFrame } from "../../../remux/codecs/audio-syntax.ts";
import { dolby } from "../../../remux/codecs/dolby.ts";
import { frameChecksum, readFrameHeader } from "../../../remux/codecs/flac.ts";
import { mpegAudio } from "../../../remux/codecs/mpeg-audio.ts";
import { readAt, type ReadFile } from "../../../remux/open-file.ts";
import { readMp3TableOf } from "../../../remux/packed-audio/mp3-table.ts";
import { id3Length } from "../../../remux/packed-audio/tags.ts";

/** Returns up to `length` bytes before the tags at the end of a file: APE, ID3v1, or both. */
function readTail(file: ReadFile, length: number): Buffer {
  const isId3 = readAt(file, file.size - 128, 3).toString("latin1") === "TAG";
  let end = file.size - (isId3 ? 128 : 0);
  // APEv2 §"APE Tags Header / Footer": the size counts the footer, and not the header.
  const footer = readAt(file, end - 32, 32);
  if (footer.toString("latin1", 0, 8) === "APETAGEX") {
    const hasHeader = (footer.readUInt32LE(20) & 0x8000_0000) !== 0;
    end -= footer.readUInt32LE(12) + (hasHeader ? 32 : 0);
  }
  const start = Math.max(0, end - length);
  return readAt(file, start, end - start);
}

/** Returns where the audio begins, after an ID3 tag. */
const startOf = (file: ReadFile): number => id3Length(readAt(file, 0, 10), 0);

/** Whether the file has the bytes that the first frame states (Xing, Info, VBRI); `null`: it states none, or is no MP3. */
export function isWholeMp3(file: ReadFile): boolean | null {
  const fileBytes = readMp3TableOf(file)?.fileBytes ?? null;
  return fileBytes === null ? null : file.size - startOf(file) >= fileBytes;
}

/** Longer than any frame. */
const bareTailBytes = 64 << 10;
/** This many frames in a row are not found by chance. */
const leastFrames = 3;

/** Whether a file of MP3, AAC (ADTS) or AC-3 frames ends within a frame: `false`; `null`: not so, or it is another file. */
export function isWholeBareAudio(file: ReadFile): false | null {
  const head = readAt(file, startOf(file), bareTailBytes);
  const syntax = [mpegAudio, adts, dolby].find((each) => isFrame(each, head, 0));
  if (syntax === undefined) return null;
  const tail = readTail(file, bareTailBytes);
  for (let start = tail.indexOf(syntax.firstByte); start >= 0; start = tail.indexOf(syntax.firstByte, start + 1)) {
    let at = start;
    let frames = 0;
    for (let frame = frameIn(syntax, tail, at); frame !== null; frame = frameIn(syntax, tail, at)) {
      at += frame.size;
      if (at > tail.length) return frames >= leastFrames ? false : null;
      frames += 1;
    }
    if (frames < leastFrames) continue;
    const isHeaderCut = at < tail.length && at + syntax.headerLength > tail.length && tail[at] === syntax.firstByte;
    return isHeaderCut ? false : null;
  }
  return null;
}

/** A page is at most 65,307 bytes long (RFC 3533 §6). */
const pageBytes = 65_307;

/** Whether the file ends with the last page of a stream; `null`: its last page does not say that it is the last. */
export function isWholeOgg(file: ReadFile): boolean | null {
  const tail = readTail(file, pageBytes);
  for (let at = tail.lastIndexOf("OggS"); at >= 0; at = at > 0 ? tail.lastIndexOf("OggS", at - 1) : -1) {
    const segments = tail[at + 26] ?? 0;
    const sizes = tail.subarray(at + 27, at + 27 + segments);
    if (at + 27 + segments + sizes.reduce((sum, size) => sum + size, 0) !== tail.length) continue;
    return (tail[at + 5]! & 4) !== 0 ? true : null;
  }
  return false;
}

/** Longer than any frame of usual streams: 64 K samples of 8 channels and 32 bits. */
const maxFrameBytes = 2 << 20;
/** What looks like the start of a frame by chance is rarer. */
const maxCandidates = 16;

/** Whether the last frame ends with the last sample that the header states; `null`: it states none, or is no FLAC. */
export function isWholeFlac(file: ReadFile): boolean | null {
  const head = readAt(file, startOf(file), 42);
  if (head.length < 42 || head.toString("latin1", 0, 4) !== "fLaC") return null;
  // STREAMINFO (RFC 9639 §8.2): 36 bits after rate, channels and bits per sample.
  const total = (head[21]! & 15) * 2 ** 32 + head.readUInt32BE(22);
  const blockSize = head.readUInt16BE(8);
  if (total === 0) return null;
  const tail = readTail(file, maxFrameBytes);
  let at = tail.length;
  for (let count = 0; count < maxCandidates && at > 0;) {
    at = tail.lastIndexOf(0xff, at - 1);
    if (at < 0) break;
    if ((tail[at + 1] ?? 0) >> 1 !== 0x7c) continue;
    count += 1;
    const frame = tail.subarray(at);
    const header = readFrameHeader(frame, blockSize);
    if (header !== null && frameChecksum(frame) === 0) return header.end >= total;
  }
  return false;
}
