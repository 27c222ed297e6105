import { open } from "node:fs/promises";
import { type Additions, boundAdditions } from "../additions.ts";
import { isFrame } from "../codecs/audio-syntax.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { writeAt } from "../mp4/write/background-writes.ts";
import { planOgg } from "../ogg/tagged-copy.ts";
import { type OpenFile, openFile, readAt, readChunks } from "../open-file.ts";
import { id3Length } from "../packed-audio/tags.ts";
import { runSteps } from "../steps.ts";
import { readFlacBlocks, writeFlacStart } from "../tags/flac-blocks.ts";
import { readId3, writeId3 } from "../tags/id3.ts";
import type { AudioTags } from "../tags/vorbis-comments.ts";

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
