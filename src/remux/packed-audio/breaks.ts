import { adts } from "../codecs/adts.ts";
import { type AudioSyntax, isRun } from "../codecs/audio-syntax.ts";
import { dolby } from "../codecs/dolby.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import type { FileWindow } from "../open-file.ts";
import { readMp3TableOf } from "./mp3-table.ts";
import { endOfFooterTag, endOfTags } from "./tags.ts";

const syntaxes = [mpegAudio, adts, dolby] as const;
/** So many places that look like the first one, and are none, are in no file but one that was made for that. */
const maxRejected = 1 << 20;
/** Unknown tags and padding are not longer. */
const maxRestBytes = 64 << 10;
const runBytes = 32 << 10;
/** Of MPEG audio, and more. */
const longestFrame = 4 << 10;

/**
 * Counts the places of a file of MP3, AAC (ADTS), AC-3 or E-AC-3 at which there are bytes between frames that are not frames, or a
 * frame of AC-3 does not match its checksums; 0 for another file. These do not count: tags, zeros after them, fewer zeros than a frame
 * has, what comes before the first frames, and up to 64 KiB after the last ones. Whole frames that are missing or doubled cannot be found. Of a
 * file with a million false starts of frames, what follows them counts as one place.
 */
export function countFrameBreaks(file: FileWindow): number {
  return readFrames(file)?.breaks ?? 0;
}

/** Returns how many whole frames a file of MP3, AAC (ADTS), AC-3 or E-AC-3 has, without one that has only a table; undefined of another file. */
export function countFrames(file: FileWindow): number | undefined {
  const read = readFrames(file);
  return read && read.frames - (readMp3TableOf(file) === null ? 0 : 1);
}

function readFrames(file: FileWindow): { frames: number; breaks: number } | undefined {
  const start = findFrames(file);
  if (start === undefined) return undefined;
  const { syntax } = start;
  let { at } = start;
  let count = 0;
  const search = { rejected: 0 };
  const sums: Sums = { frames: 0, wrong: 0, places: 0, isRight: true };
  /** If most are wrong, they are none. */
  const changedPlaces = () => (sums.wrong * 2 <= sums.frames ? sums.places : 0);
  while (at < file.size) {
    const frames = walk(file, syntax, { at, sums });
    if (frames.end >= file.size) break;
    const from = endOfTags(file, frames.end);
    const next = findRun(file, syntax, { search, from });
    if (next === undefined) {
      if (search.rejected > maxRejected || file.size - from > maxRestBytes) count += 1;
      break;
    }
    if (!isHarmless(file, frames, next)) {
      count += 1;
      // The frame that is cut off there was counted.
      if (!sums.isRight) sums.places -= 1;
      sums.isRight = true;
    }
    at = next;
  }
  return { frames: sums.frames, breaks: count + changedPlaces() };
}

/**
 * Returns where the first frames of a file of MP3, AAC (ADTS), AC-3 or E-AC-3 are; undefined of another file. It may begin within a frame:
 * programs that record radio do that.
 */
export function findFrames(file: FileWindow): { syntax: AudioSyntax; at: number } | undefined {
  const first = endOfTags(file, 0);
  const syntax = syntaxes.find((each) => isRun(each, file.at(first), 0));
  if (syntax !== undefined) return { syntax, at: first };
  for (const each of syntaxes) {
    const at = findRun(file, each, { search: { rejected: 0 }, from: first, limit: first + longestFrame });
    if (at !== undefined) return { syntax: each, at };
  }
  return undefined;
}

interface Frames {
  end: number;
  /** Bytes of the longest one. */
  longest: number;
}

/** What was found of the checksums of frames. */
interface Sums {
  frames: number;
  wrong: number;
  /** Where wrong ones follow right ones. */
  places: number;
  /** The last one. */
  isRight: boolean;
}

/** Whether there are only tags and zeros after frames until `next`. */
function isHarmless(file: FileWindow, { end, longest }: Frames, next: number): boolean {
  let at = endOfTags(file, endOfFooterTag(file, end, next));
  let hasTags = at > end;
  for (let zerosEnd = endOfZeros(file, at, next); zerosEnd < next; zerosEnd = endOfZeros(file, at, next)) {
    at = endOfTags(file, zerosEnd);
    if (at === zerosEnd) return false;
    hasTags = true;
  }
  return hasTags || next - end < longest;
}

/** Follows the frames from `at` on; returns where the last one ends, and the size of the longest. */
function walk(file: FileWindow, syntax: AudioSyntax, { at, sums }: { at: number; sums: Sums }): Frames {
  let end = at;
  let longest = 0;
  while (end < file.size) {
    const bytes = file.at(end);
    const isLast = end + bytes.length === file.size;
    let offset = 0;
    while (offset < bytes.length) {
      const frame = syntax.frameAt(bytes, offset, isLast || offset === 0);
      if (frame === "incomplete") break;
      if (frame === null) return { end: end + offset, longest };
      const frameEnd = offset + frame.size;
      if (frameEnd > bytes.length && !isLast && offset > 0) break;
      if (frameEnd <= bytes.length) check(syntax, bytes.subarray(offset, frameEnd), sums);
      longest = Math.max(longest, frame.size);
      offset = frameEnd;
    }
    end += offset;
  }
  return { end, longest };
}

function check(syntax: AudioSyntax, frame: Uint8Array, sums: Sums): void {
  const isRight = syntax.isIntact?.(frame) ?? true;
  sums.frames += 1;
  if (!isRight) sums.wrong += 1;
  if (!isRight && sums.isRight) sums.places += 1;
  sums.isRight = isRight;
}

interface RunSearch {
  /** Counts what turned out to be no run. */
  search: { rejected: number };
  from: number;
  /** Default: the end of the file. */
  limit?: number;
}

/** Returns where frames follow each other from `from` on, before `limit`; undefined: nowhere, or there are too many false starts. */
function findRun(
  file: FileWindow,
  syntax: AudioSyntax,
  { search, from, limit = Infinity }: RunSearch,
): number | undefined {
  const to = Math.min(limit, file.size);
  for (let at = from; at < to;) {
    const bytes = file.at(at);
    const isLast = at + bytes.length === file.size;
    const searched = Math.min(isLast ? bytes.length : bytes.length - runBytes, to - at);
    for (let found = 0; found < searched; found++) {
      if (bytes[found] !== syntax.firstByte) continue;
      if (isRun(syntax, bytes, found)) return at + found;
      if (++search.rejected > maxRejected) return undefined;
    }
    at += searched;
  }
  return undefined;
}

function endOfZeros(file: FileWindow, from: number, to: number): number {
  for (let at = from; at < to;) {
    const bytes = file.at(at).subarray(0, to - at);
    const length = bytes.findIndex((byte) => byte !== 0);
    if (length >= 0) return at + length;
    at += bytes.length;
  }
  return to;
}
