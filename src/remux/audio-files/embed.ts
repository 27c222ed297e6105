import { open } from "node:fs/promises";
import { type Additions, boundAdditions } from "../additions.ts";
import { isFrame } from "../codecs/audio-syntax.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { writeAt } from "../mp4/write/background-writes.ts";
import { createFileWindow, type OpenFile, openFile, readAt, readChunks } from "../open-file.ts";
import { id3Length } from "../packed-audio/tags.ts";
import { runSteps } from "../steps.ts";
import { readId3, writeId3 } from "../tags/id3.ts";
import {
  type AudioTags,
  readComments,
  readFlacBlocks,
  withTagsAndCover,
  writeComments,
  writeFlacStart,
} from "../tags/vorbis-comments.ts";
import { codecOf, isIntact, OggWriter, readPage } from "./ogg-pages.ts";

/** Writes a copy of a file, a bounded part in each step, at last whether it is right; undefined: there can be none. */
type Copy = ((fd: number) => Generator<undefined, boolean>) | undefined;

/**
 * Copies an MP3, a FLAC file or an Ogg file of Vorbis or Opus with tags, chapters and a cover; its audio stays byte for byte. What
 * its tags say already is kept unless it is replaced. Returns false if it is another file, its tags cannot be read, or pages of Ogg are damaged or missing.
 *
 * @param durationS Of the file.
 * @throws the file system's own errors; `signal.reason`
 */
export async function embedInAudio(
  source: string,
  target: string,
  given: Additions,
  { durationS, signal }: { durationS: number; signal: AbortSignal },
): Promise<boolean> {
  using file = openFile(source);
  const additions = boundAdditions(given, durationS);
  const copy = planMp3(file, additions, durationS) ?? planFlac(file, additions) ?? planOgg(file, additions);
  if (copy === undefined) return false;
  await using made = await open(target, "w");
  return await runSteps(copy(made.fd), signal);
}

/** A longer tag is not read. */
const maxTagBytes = 64 << 20;
const frameBytes = 8 << 10;

function planMp3(file: OpenFile, additions: AudioTags, durationS: number): Copy {
  const end = id3Length(readAt(file, 0, 10), 0);
  const first = readAt(file, end, frameBytes);
  if (end > maxTagBytes || first.length < mpegAudio.headerLength || !isFrame(mpegAudio, first, 0)) return undefined;
  const kept = end === 0 ? [] : readId3(readAt(file, 0, end));
  return kept && ((fd) => copyWith(file, fd, { before: 0, start: writeId3(additions, durationS, kept), from: end }));
}

function planFlac(file: OpenFile, additions: AudioTags): Copy {
  // A tag of ID3 before the signature is no part of FLAC, and stays.
  const before = id3Length(readAt(file, 0, 10), 0);
  const read = readFlacBlocks((at, length) => readAt(file, before + at, length));
  const start = read && writeFlacStart(read.blocks, additions);
  return start && ((fd) => copyWith(file, fd, { before, start, from: before + read.end }));
}

/** Copies the first `before` bytes of a file, then `start`, then the file from `from` on. */
function* copyWith(
  file: OpenFile,
  fd: number,
  { before, start, from }: { before: number; start: Uint8Array; from: number },
): Generator<undefined, boolean> {
  let position = 0;
  function* parts() {
    yield* readChunks(file, before);
    yield start;
    yield* readChunks(file, file.size, from);
  }
  for (const part of parts()) {
    writeAt(fd, part, position);
    position += part.length;
    yield;
  }
  return true;
}

/** More pages, or bytes of headers, are none. */
const maxHeaderPages = 4_000;
const maxHeaderBytes = 64 << 20;

/**
 * Plans a copy of an Ogg file with one stream of Vorbis or Opus, whose audio pages stay, but for their numbers. It is wrong if pages are
 * damaged or missing, which their new numbers would hide.
 */
function planOgg(file: OpenFile, additions: AudioTags): Copy {
  const headers = readHeaders(file);
  const codec = headers?.packets[0] && codecOf(headers.packets[0]);
  const stored = headers?.packets[1];
  if (headers === undefined || codec === undefined || headers.packets.length !== codec.count) return undefined;
  if (stored?.toString("latin1", 0, codec.comments.length) !== codec.comments) return undefined;
  const comments = readComments(stored.subarray(codec.comments.length));
  if (comments === undefined) return undefined;
  const written = writeComments(withTagsAndCover(additions, comments));
  const replaced = Buffer.concat([Buffer.from(codec.comments), written, Buffer.from(codec.ending, "latin1")]);
  return (fd) => writeCopy(file, fd, headers, replaced);
}

/** Reads the packets before the first page of audio: that begins after the last header (Ogg Vorbis I §A.2, RFC 7845 §3). */
function readHeaders(file: OpenFile) {
  const window = createFileWindow(file);
  const packets: Buffer[] = [];
  let serial: number | undefined;
  let count = Infinity;
  let parts: Buffer[] = [];
  let bytes = 0;
  let at = 0;
  for (let pages = 0; packets.length < count; pages++) {
    const page = readPage(window, at);
    if (page === undefined || pages === maxHeaderPages || page.serial !== (serial ??= page.serial)) return undefined;
    const body = window.at(page.body);
    let from = 0;
    for (const size of page.segments) {
      parts.push(Buffer.from(body.subarray(from, from + size)));
      from += size;
      bytes += size;
      if (size === 255) continue;
      packets.push(Buffer.concat(parts));
      parts = [];
    }
    count = (packets[0] && codecOf(packets[0])?.count) ?? 0;
    if (bytes > maxHeaderBytes) return undefined;
    at = page.end;
  }
  const next = readPage(window, at);
  const isOther = next !== undefined && (next.isFirst || next.isContinued);
  return parts.length > 0 || isOther || serial === undefined ? undefined : { packets, serial, end: at };
}

const stepPages = 64;

function* writeCopy(
  file: OpenFile,
  fd: number,
  { packets: [first, , ...others], serial, end }: NonNullable<ReturnType<typeof readHeaders>>,
  comments: Uint8Array,
): Generator<undefined, boolean> {
  const writer = new OggWriter(fd, serial);
  writer.add(first!, 0n, true);
  writer.add(comments, 0n, others.length === 0);
  for (const [index, packet] of others.entries()) writer.add(packet, 0n, index === others.length - 1);
  const window = createFileWindow(file);
  let at = end;
  let sequence: number | undefined;
  for (let count = 1; ; count++) {
    const page = readPage(window, at);
    if (page?.serial !== serial || page.isFirst) break;
    const bytes = window.at(at).subarray(0, page.end - at);
    if (!isIntact(bytes) || (sequence !== undefined && page.sequence !== sequence + 1)) return false;
    writer.copyPage(bytes);
    ({ sequence } = page);
    at = page.end;
    if (count % stepPages === 0) yield;
  }
  // Another stream after this one, or what is no page.
  for (const rest of readChunks(file, file.size, at)) {
    writer.copyBytes(rest);
    yield;
  }
  return true;
}
