import { ServiceError } from "../../model/errors.ts";
import { adts } from "../codecs/adts.ts";
import { type AudioSyntax, isFrame, isRun } from "../codecs/audio-syntax.ts";
import { dolby } from "../codecs/dolby.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createAudioTrack } from "../elementary-streams/audio-track.ts";
import { StreamClock } from "../elementary-streams/clock.ts";
import { findFirstTime } from "../elementary-streams/first-time.ts";
import { ElementaryStream, type TrackReader } from "../elementary-streams/stream.ts";
import { TimeBases } from "../elementary-streams/time-bases.ts";
import { ticksPerSecond } from "../elementary-streams/timestamps.ts";
import { SkipError } from "../timelines.ts";
import type { Demuxer, DemuxerOptions, SampleSink, SegmentTiming } from "../samples.ts";
import { createTrackOutput, type TrackOutput } from "../track-output.ts";
import { readMp3Table } from "./mp3-table.ts";
import { skipId3Tags } from "./tags.ts";

/** How much of a segment is read at a time: the stream holds less than a long segment has. */
const stepBytes = 1 << 20;

const syntaxes = [adts, mpegAudio, dolby] as const;
/** Of AAC: longer than any of MPEG audio. */
const longestFrame = 8 << 10;

type PackedAudioOptions = Omit<DemuxerOptions, "kinds">;

/**
 * Creates a demuxer of packed audio (RFC 8216 §3.4): AAC in ADTS, MP3, AC-3 or E-AC-3 frames. Each segment
 * has its time in an ID3 tag before the audio; one without continues where the previous one ended, or, if segments between them are missing, later by as much; the first one
 * begins with another source. What the table of the first MP3 segment of a timeline counts as the delay of encoder and decoder is priming.
 */
export function createPackedAudioDemuxer(options: PackedAudioOptions): Demuxer {
  return new PackedAudioDemuxer(options);
}

class PackedAudioDemuxer implements Demuxer {
  readonly #bases: TimeBases;
  readonly #clock: StreamClock;
  readonly #priming: ReturnType<typeof createPriming>;
  readonly #output: TrackOutput;
  readonly #onDrop: PackedAudioOptions["onDrop"];
  #stream = new ElementaryStream();
  #track: TrackReader | null = null;
  #syntax: AudioSyntax | null = null;
  #current: SegmentTiming | null = null;

  constructor({ sink, timelines, onDrop }: PackedAudioOptions) {
    this.#bases = new TimeBases(timelines);
    this.#clock = new StreamClock(this.#bases, "audio");
    this.#priming = createPriming(sink);
    this.#output = createTrackOutput(this.#priming.sink);
    this.#onDrop = onDrop;
  }

  read(segment: Uint8Array, timing: SegmentTiming): void {
    const { start: afterTags, timestamp } = skipId3Tags(segment);
    const isStart = timing.timeline !== this.#current?.timeline;
    if (isStart) this.#startTimeline(timing);
    else if (timing !== this.#current && timing.skippedS !== undefined) {
      if (timestamp === null) throw new SkipError("a segment after what is left out has no timestamp");
      this.flush();
      this.#bases.skip(timing.skippedS);
    }
    const missedS = isStart ? 0 : missedBetween(this.#current, timing);
    const table = timing === this.#current ? null : readMp3Table(segment, afterTags);
    if (isStart) this.#priming.start(table?.trims?.startS ?? 0);
    this.#current = timing;
    const start = afterTags + (table?.frameBytes ?? 0);
    if (start >= segment.length) return;
    this.#readFrames(segment, start, timestamp ?? this.#stampOf(missedS));
  }

  firstTime(segment: Uint8Array): number | null | undefined {
    return findFirstTime(createPackedAudioDemuxer, segment);
  }

  flush(): void {
    this.#track?.read(true);
  }

  #startTimeline(timing: SegmentTiming): void {
    this.flush();
    this.#track = null;
    this.#syntax = null;
    this.#bases.reset(timing);
  }

  /** Returns the timestamp of a segment that has none; `null`: it continues the one before. */
  #stampOf(missedS: number): number | null {
    if (!this.#clock.tryStart()) return this.#bases.startStamp();
    if (missedS === 0) return null;
    this.flush();
    return this.#clock.endStamp + Math.round(missedS * ticksPerSecond);
  }

  #readFrames(segment: Uint8Array, afterTags: number, stamp: number | null): void {
    const syntax = syntaxes.find((candidate) => isFrame(candidate, segment, afterTags)) ?? this.#syntax;
    const found = syntax === null ? findCutAudio(segment, afterTags) : { syntax, start: afterTags };
    if (found === undefined) throw noAudioError();
    this.#append(segment, found, stamp);
  }

  #append(segment: Uint8Array, { syntax, start }: PackedAudio, stamp: number | null): void {
    const track = this.#track !== null && syntax === this.#syntax ? this.#track : this.#open(syntax);
    const time = stamp === null ? null : { pts: stamp, dts: stamp };
    if (time && this.#clock.beginsTimeBase(time)) track.read(true);
    if (time) this.#clock.note(time);
    this.#clock.start();
    this.#stream.begin(time);
    const { buffer, byteOffset, length } = segment;
    const bytes = Buffer.from(buffer, byteOffset, length);
    for (let at = start; at < length; at += stepBytes) {
      this.#stream.append(bytes, at, Math.min(at + stepBytes, length));
      track.read(false);
    }
  }

  #open(syntax: AudioSyntax): TrackReader {
    this.flush();
    this.#stream = new ElementaryStream();
    this.#syntax = syntax;
    const options = { stream: this.#stream, clock: this.#clock, output: this.#output, language: null };
    this.#track = createAudioTrack({ ...options, syntax, onDrop: () => this.#onDrop?.("audio") });
    return this.#track;
  }
}

/** Creates a sink that passes samples on, of which the next ones begin with the priming that is announced. */
function createPriming(sink: SampleSink) {
  let timescale = 1;
  let leftS = 0;
  return {
    start: (seconds: number): void => void (leftS = seconds),
    sink: {
      setFormat(format, track) {
        ({ timescale } = format);
        return sink.setFormat(format, track);
      },
      write(track, sample) {
        const primingTicks = Math.min(sample.duration, Math.round(leftS * timescale));
        leftS -= primingTicks / timescale;
        sink.write(track, primingTicks > 0 ? { ...sample, primingTicks } : sample);
      },
    } satisfies SampleSink,
  };
}

/** Returns about how long the segments last that are missing between two, seconds: each as long as the first of the two. */
function missedBetween(before: SegmentTiming | null, after: SegmentTiming): number {
  const missed = (after.sequence ?? NaN) - (before?.sequence ?? NaN) - 1;
  return missed > 0 ? missed * (before?.durationS ?? 0) : 0;
}

interface PackedAudio {
  syntax: AudioSyntax;
  start: number;
}

/**
 * Returns where the first frame starts of packed audio that begins within one: some packagers cut MP3 anywhere, and a live playlist may list such a
 * segment first. Undefined: it is none.
 */
export function findCutAudio(segment: Uint8Array, from: number): PackedAudio | undefined {
  const head = segment.subarray(0, from + longestFrame);
  for (const syntax of syntaxes) {
    for (let start = from; (start = head.indexOf(syntax.firstByte, start)) >= 0; start += 1) {
      if (isRun(syntax, segment, start)) return { syntax, start };
    }
  }
  return undefined;
}

/** Returns whether packed audio starts at `at`. */
export function isPackedAudio(segment: Uint8Array, at: number): boolean {
  return syntaxes.some((syntax) => isFrame(syntax, segment, at));
}

function noAudioError(): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    "a segment of packed audio does not start with a frame of AAC, MP3, AC-3 or E-AC-3",
  );
}
