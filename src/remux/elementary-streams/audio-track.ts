import type { AudioFrame, AudioSyntax } from "../codecs/audio-syntax.ts";
import { ticksPerSecond } from "./timestamps.ts";
import type { TrackReader, TrackReaderOptions } from "./stream.ts";

export interface AudioTrackOptions extends TrackReaderOptions<AudioSyntax> {
  /** Whether a segment begins with the packet that has this timestamp; default: it is not known where timestamps go on. */
  isSegmentStart?: (pts: number) => boolean;
}

/**
 * Creates a reader of audio whose frames have a header each. Times are counted in frames from the first
 * timestamp on, so that rounded times cause no jitter. Counting restarts from a timestamp that is off by
 * more than a frame, so that gaps are kept; within a segment, a gap of whole frames counts as damage. Bytes between frames are left out; those that are no tag count as damage.
 */
export function createAudioTrack(options: AudioTrackOptions): TrackReader {
  const { stream, syntax, output, onDrop = () => {} } = options;
  const counter = createCounter(options);
  let format: string | null = null;
  /** The next frame starts right here: the previous one was complete. */
  let isAligned = false;

  const write = (frame: AudioFrame, bytes: Buffer, at: number): void => {
    if (frame.key !== format) {
      format = frame.key;
      const { language } = options;
      const shape = { kind: "audio" as const, timescale: frame.sampleRate, width: 0, height: 0 };
      output.setFormat({ ...shape, language, sampleEntry: frame.makeSampleEntry() });
    }
    const data = bytes.subarray(at + frame.headerSize, at + frame.size);
    const times = counter.next(frame, data, stream.takeTime(at)?.pts ?? null);
    if (times === null) return;
    const { dts, duration } = times;
    output.write({ data, dts, pts: dts, duration, isSync: true });
  };
  const read = (isLast: boolean): void => {
    const bytes = stream.view();
    let at = 0;
    while (at < bytes.length) {
      const frame = syntax.frameAt(bytes, at, isLast);
      if (frame === "incomplete") break;
      const isComplete = frame !== null && at + frame.size <= bytes.length;
      const isFrame = frame && (isAligned || isConfirmed(syntax, bytes, at, frame, isLast));
      if (isFrame === "incomplete" || (isFrame && !isComplete && !isLast)) break;
      if (isAligned && frame === null && !isTag(bytes, at)) onDrop();
      isAligned = Boolean(isFrame) && isComplete;
      if (isAligned && frame) {
        write(frame, bytes, at);
        at += frame.size;
      } else {
        const next = bytes.indexOf(syntax.firstByte, at + 1);
        at = next < 0 ? bytes.length : next;
      }
    }
    stream.consume(isLast ? bytes.length : at);
  };
  return {
    read,
    skip() {
      stream.takeTime(stream.length);
      stream.consume(stream.length);
      isAligned = false;
      counter.skip();
    },
  };
}

const tags = ["TAG", "ID3", "APETAGEX", "LYRICSBEGIN"];

/** Returns whether a tag of a file starts at `at`: ID3, APE or Lyrics3. */
function isTag(bytes: Buffer, at: number): boolean {
  return tags.some((tag) => bytes.toString("latin1", at, at + tag.length) === tag);
}

/** Returns whether another such frame follows: any bytes may look like the start of one by chance. */
function isConfirmed(
  syntax: AudioSyntax,
  bytes: Buffer,
  at: number,
  frame: AudioFrame,
  isLast: boolean,
): boolean | "incomplete" {
  const end = at + frame.size;
  if (end + syntax.headerLength > bytes.length) return isLast ? end <= bytes.length : "incomplete";
  const next = syntax.frameAt(bytes, end, isLast);
  return next === "incomplete" ? next : next?.key === frame.key;
}

/** So many timestamps in a row must be where frames end before one that is later says that frames are missing. */
const steadyStamps = 12;
/** Times of other containers that they come from are in milliseconds. */
const exactS = 0.0015;

/** Finds where whole frames are missing between timestamps. */
function createLossCheck() {
  let steady = 0;
  /** How much later than where the frames before it end the latest timestamp was, seconds. */
  let latestS = 0;
  return {
    /** @param lateS Of a timestamp; @param frameS How long a frame lasts; returns whether frames before it are missing. */
    isLoss(lateS: number, frameS: number, isSegmentStart: boolean): boolean {
      const addedS = lateS - latestS;
      const frames = Math.round(addedS / frameS);
      const isWhole = frames > 0 && Math.abs(addedS - frames * frameS) <= exactS;
      const isLoss = isWhole && steady >= steadyStamps && !isSegmentStart;
      steady = Math.abs(addedS) <= exactS ? steady + 1 : 0;
      latestS = lateS;
      return isLoss;
    },
    /** What is missing before the next timestamp is known. */
    skip(): void {
      steady = 0;
    },
    /** Frames are counted from the latest timestamp on. */
    restart(): void {
      latestS = 0;
    },
  };
}

function createCounter({ clock, output, isSegmentStart, onDrop }: AudioTrackOptions) {
  const losses = createLossCheck();
  /** Where counting started, ticks; `null`: not yet. */
  let origin: number | null = null;
  /** Seconds counted since. */
  let counted = 0;
  return {
    skip: losses.skip,
    /** Returns time and duration of `frame` in ticks of the track, `null` if it was there before; `stamp`: its timestamp. */
    next(frame: AudioFrame, data: Uint8Array, stamp: number | null): { dts: number; duration: number } | null {
      const { timescale } = output;
      const length = frame.samples / frame.sampleRate;
      const expected = (origin ?? 0) + Math.round(counted * timescale);
      const stampS = stamp === null ? null : clock.time(stamp) / ticksPerSecond;
      if (output.repeats.has(data, stampS === null ? null : stampS * timescale, (length * timescale) / 4)) return null;
      const lateS = stampS === null ? 0 : stampS - expected / timescale;
      const isStart = stamp === null || origin === null || isSegmentStart?.(stamp) !== false;
      const isLoss = stampS !== null && losses.isLoss(origin === null ? 0 : lateS, length, isStart);
      if (isLoss) onDrop?.();
      if (stampS !== null && (origin === null || isLoss || Math.abs(lateS) > length)) {
        origin = Math.round(stampS * timescale);
        counted = 0;
        losses.restart();
      }
      const dts = (origin ??= expected) + Math.round(counted * timescale);
      counted += length;
      const end = origin + Math.round(counted * timescale);
      clock.reach((end / timescale) * ticksPerSecond);
      output.repeats.add(data, dts);
      return { dts, duration: end - dts };
    },
  };
}
