import { statSync } from "node:fs";
import { ids, readElement } from "../../../remux/matroska/elements.ts";
import { isCompleteMp4, lacksIndexedSegments, listsItsFragments } from "../../../remux/mp4/read/file-boxes.ts";
import { numbersIn } from "../../../remux/mp4/read/number-source.ts";
import { startsAsMatroska, startsAsMp4 } from "../../../remux/file-header.ts";
import { pageEnd } from "../../../remux/audio-files/ogg-pages.ts";
import { openFile, readAt, type ReadFile, readFileStart } from "../../../remux/open-file.ts";
import { readPcmContainer } from "./pcm-containers.ts";
import { unreadKind } from "./unread-kind.ts";
import { adts } from "../../../remux/codecs/adts.ts";
import { frameIn, isFrame } from "../../../remux/codecs/audio-syntax.ts";
import { dolby } from "../../../remux/codecs/dolby.ts";
import { frameChecksum, readFrameHeader } from "../../../remux/codecs/flac.ts";
import { mpegAudio } from "../../../remux/codecs/mpeg-audio.ts";
import { readMp3TableOf } from "../../../remux/packed-audio/mp3-table.ts";
import { id3Length } from "../../../remux/packed-audio/tags.ts";

const headBytes = 64;

/**
 * Whether a file has all bytes that its container states. Containers that state no length (MP3, AAC, Ogg,
 * TS …) count as complete.
 */
export function isCompleteFile(path: string): boolean {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  if (startsAsMp4(head)) return isCompleteMp4(path);
  return isCompleteEbml(head, statSync(path).size) ?? true;
}

/**
 * Whether a file ends where its container says that it ends; `null`: it does not say so. Audio frames without a
 * container show only whether the last one is cut off. Reads the start and the end of the file.
 * @throws the file system's own errors.
 */
export function isWholeFile(path: string): boolean | null {
  using file = openFile(path);
  const head = readAt(file, 0, headBytes);
  if (startsAsMp4(head)) return isWholeMp4(path);
  if (startsAsMatroska(head)) return isCompleteEbml(head, file.size);
  if (head.toString("latin1", 0, 4) === "OggS") return isWholeOgg(file);
  const pcm = readPcmContainer(file);
  if (pcm !== undefined) return pcm.isWhole;
  return isWholeAvi(file) ?? isWholeAsf(file) ?? isWholeFlac(file) ?? isWholeMp3(file) ?? isWholeBareAudio(file);
}

/** Fragments say only how long each of them is: where they end is known from an index alone. */
function isWholeMp4(path: string): boolean | null {
  if (!isCompleteMp4(path) || lacksIndexedSegments(path)) return false;
  return listsItsFragments(path) ? true : null;
}

/** Whether the container of a file marks its end (RFC 3533 §6: the last page): without the mark it may be a part of one. */
export function mustMarkEnd(path: string): boolean {
  return readFileStart(path, Buffer.alloc(4)).toString("latin1") === "OggS";
}

/** Matroska and WebM (RFC 8794 §6): one Segment after the EBML header. `null` if its size is unknown, or it is another file. */
function isCompleteEbml(head: Buffer, size: number): boolean | null {
  if (!startsAsMatroska(head)) return null;
  const source = numbersIn(head);
  const header = readElement(source, 0, head.length);
  if (header === undefined) return false;
  if (header.end + 4 > head.length || source.u32(header.end) !== ids.segment) return null;
  const segment = readElement(source, header.end, head.length);
  if (segment === undefined) return false;
  return segment.end === Infinity ? null : segment.end <= size;
}

/** Whether an AVI file has the bytes that its first chunk states; `null`: it states none, or others follow, or it is another file. */
function isWholeAvi(file: ReadFile): boolean | null {
  const head = readAt(file, 0, 12);
  if (unreadKind(head) !== "avi") return null;
  const stated = head.readUInt32LE(4);
  const { size } = file;
  // Written to a pipe, which cannot be corrected later.
  if (stated === 0 || stated === 0xffff_ffff) return null;
  // Some writers count the eight bytes before it too.
  if (stated > size) return false;
  const padding = 1;
  return size <= 8 + stated + padding ? true : null;
}

const maxHeaderBytes = 1 << 20;
const filePropertiesObject = Buffer.from("a1dcab8c47a9cf118ee400c00c205365", "hex");
/** Before the first packet: the header of the object that holds them. */
const dataHeaderBytes = 50;

/** The packets of an ASF file, which are of one size. */
interface AsfPackets {
  /** Where the first one is. */
  start: number;
  packetBytes: number;
  count: number;
}

/** Returns where the packets of a WMV file are, as its header states (ASF 1.2 §3.2); `null`: it states none, or it is another file. */
export function readAsfPackets(file: ReadFile): AsfPackets | null {
  const head = readAt(file, 0, maxHeaderBytes);
  if (head.length < 24 || unreadKind(head) !== "wmv") return null;
  const at = head.indexOf(filePropertiesObject);
  if (at < 0 || at + 104 > head.length) return null;
  const count = Number(head.readBigUInt64LE(at + 56));
  const isLive = (head.readUInt32LE(at + 88) & 1) !== 0;
  const [least, most] = [head.readUInt32LE(at + 92), head.readUInt32LE(at + 96)];
  if (isLive || count === 0 || least !== most) return null;
  return { start: Number(head.readBigUInt64LE(16)) + dataHeaderBytes, packetBytes: most, count };
}

/** Whether a WMV file has the packets that its header states; `null`: it states none, or it is another file. */
function isWholeAsf(file: ReadFile): boolean | null {
  const packets = readAsfPackets(file);
  return packets && file.size >= packets.start + packets.count * packets.packetBytes;
}

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
function isWholeMp3(file: ReadFile): boolean | null {
  const fileBytes = readMp3TableOf(file)?.fileBytes ?? null;
  return fileBytes === null ? null : file.size - startOf(file) >= fileBytes;
}

/** Longer than any frame. */
const bareTailBytes = 64 << 10;
/** This many frames in a row are not found by chance. */
const leastFrames = 3;

/** Whether a file of MP3, AAC (ADTS) or AC-3 frames ends within a frame: `false`; `null`: not so, or it is another file. */
function isWholeBareAudio(file: ReadFile): false | null {
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

/** Many pages, as streams that end before others are known by theirs: one has at most 65,307 bytes (RFC 3533 §6). */
const pagesBytes = 1 << 19;
const [linkStart, streamEnd] = [2, 4];

/**
 * Whether the file ends with the last pages of the streams that are multiplexed at its end; `null`: the last page of one does not say that it
 * is the last.
 */
function isWholeOgg(file: ReadFile): boolean | null {
  const tail = readTail(file, pagesBytes);
  const ended = new Set<number>();
  let end = tail.length;
  for (let at = tail.lastIndexOf("OggS"); at >= 0; at = at > 0 ? tail.lastIndexOf("OggS", at - 1) : -1) {
    if (pageEnd(tail, at) !== end) continue;
    const [flags, serial] = [tail[at + 5]!, tail.readUInt32LE(at + 14)];
    if (!ended.has(serial) && (flags & streamEnd) === 0) return null;
    // Streams before it are of an earlier link of a chain.
    if ((flags & linkStart) !== 0) break;
    ended.add(serial);
    end = at;
  }
  return end < tail.length;
}

/** Longer than any frame of usual streams: 64 K samples of 8 channels and 32 bits. */
const maxFrameBytes = 2 << 20;
/** What looks like the start of a frame by chance is rarer. */
const maxCandidates = 16;

/** Whether the last frame ends with the last sample that the header states; `null`: it states none, or is no FLAC. */
function isWholeFlac(file: ReadFile): boolean | null {
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
