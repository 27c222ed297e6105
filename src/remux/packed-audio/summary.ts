import { isUpstreamError, ServiceError } from "../../model/errors.ts";
import { adts } from "../codecs/adts.ts";
import { type AudioFrame, type AudioSyntax, frameIn, isFrame } from "../codecs/audio-syntax.ts";
import { dolby } from "../codecs/dolby.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createFileWindow, type FileWindow, openFile } from "../open-file.ts";
import { readMp3TableOf } from "./mp3-table.ts";
import { findFrames } from "./breaks.ts";
import { endOfTags } from "./tags.ts";

export interface FramesSummary {
  codec: "mp3" | "aac" | "ac-3" | "ec-3";
  /** Seconds of all frames. */
  durationS: number;
  /** The last frame is not cut off. */
  isComplete: boolean;
}

const syntaxes = [adts, dolby] as const;
/** More bytes that are neither frames nor tags are no audio file. */
const maxGarbage = 64 << 10;
const stepBytes = 1 << 20;

/**
 * Reads a file of AAC (ADTS), AC-3 or E-AC-3 frames, frame by frame to its end; tags may be before, between
 * and after them. Each step reads a bounded part. Returns undefined if its audio starts otherwise.
 * @throws ServiceError `upstream_invalid` if over 64 KiB are neither frame nor tag; the file system's own errors.
 */
export function* readFramesSummary(path: string): Generator<undefined, FramesSummary | undefined> {
  using opened = openFile(path);
  const file = createFileWindow(opened);
  const start = endOfTags(file, 0);
  const syntax = syntaxes.find((candidate) => isStart(candidate, file, start));
  return syntax && (yield* summarize(file, { syntax, at: start }));
}

/** Like `readFramesSummary`, of a file that may begin within a frame, of MP3 too. */
export function* readCutFrames(path: string): Generator<undefined, FramesSummary | undefined> {
  using opened = openFile(path);
  const file = createFileWindow(opened);
  const start = findFrames(file);
  return start && (yield* summarize(file, start));
}

/** Returns undefined if no frame is at `at`. */
function* summarize(
  file: FileWindow,
  { syntax, at }: { syntax: AudioSyntax; at: number },
): Generator<undefined, FramesSummary | undefined> {
  const frame = frameIn(syntax, file.at(at), 0);
  return frame ? { codec: codecOf(syntax, frame), ...(yield* walk(file, syntax, at)) } : undefined;
}

function codecOf(syntax: AudioSyntax, { key }: AudioFrame): FramesSummary["codec"] {
  if (syntax === mpegAudio) return "mp3";
  if (syntax === adts) return "aac";
  return key.startsWith("ac-3") ? "ac-3" : "ec-3";
}

/**
 * Returns how long the frames of an MP3 file last that has no table of all of them, seconds: their bit rates may differ. Undefined: it has
 * one, or is damaged or another file. Each step reads a bounded part.
 * @throws the file system's own errors.
 */
export function* measureMp3(path: string): Generator<undefined, number | undefined> {
  using opened = openFile(path);
  const table = readMp3TableOf(opened);
  if (table !== null && !table.isOfPart) return undefined;
  const file = createFileWindow(opened);
  const start = endOfTags(file, 0) + (table?.frameBytes ?? 0);
  if (!isStart(mpegAudio, file, start)) return undefined;
  try {
    return (yield* walk(file, mpegAudio, start)).durationS;
  } catch (error) {
    if (isUpstreamError(error)) return undefined;
    throw error;
  }
}

/** Returns whether a frame is at `at`, and after it another one, a tag or the end. */
function isStart(syntax: AudioSyntax, file: FileWindow, at: number): boolean {
  const bytes = file.at(at);
  const frame = frameIn(syntax, bytes, 0);
  if (frame === null) return false;
  return isFrame(syntax, bytes, 0) || endOfTags(file, at + frame.size) > at + frame.size;
}

/** Counts the frames from `start` to the end of the file. */
function* walk(
  file: FileWindow,
  syntax: AudioSyntax,
  start: number,
): Generator<undefined, Pick<FramesSummary, "durationS" | "isComplete">> {
  const samples = new Map<number, number>();
  let garbage = 0;
  let isAligned = true;
  let pause = start + stepBytes;
  for (let at = start; at < file.size;) {
    if (at >= pause) {
      pause = at + stepBytes;
      yield;
    }
    const bytes = file.at(at);
    const frame = frameIn(syntax, bytes, 0);
    const isKnown = isAligned || isStart(syntax, file, at);
    if (isKnown && frame !== null) {
      if (at + frame.size > file.size) return { durationS: secondsOf(samples), isComplete: false };
      samples.set(frame.sampleRate, (samples.get(frame.sampleRate) ?? 0) + frame.samples);
      at += frame.size;
      isAligned = true;
      continue;
    }
    const afterTags = endOfTags(file, at);
    if (afterTags > at) {
      at = afterTags;
      continue;
    }
    const isCut = isAligned && bytes.length < syntax.headerLength && bytes[0] === syntax.firstByte;
    if (isCut) return { durationS: secondsOf(samples), isComplete: false };
    const next = bytes.indexOf(syntax.firstByte, 1);
    const skipped = next < 0 ? bytes.length : next;
    garbage += skipped;
    if (garbage > maxGarbage) {
      throw new ServiceError("upstream_invalid", `reading audio frames stopped: over ${maxGarbage} bytes are none`);
    }
    at += skipped;
    isAligned = false;
  }
  return { durationS: secondsOf(samples), isComplete: true };
}

/** @param samples By sampling rate. */
function secondsOf(samples: ReadonlyMap<number, number>): number {
  return samples.entries().reduce((sum, [rate, count]) => sum + count / rate, 0);
}
