import { ServiceError } from "../../model/errors.ts";
import { adts } from "../codecs/adts.ts";
import { type AudioSyntax, isFrame } from "../codecs/audio-syntax.ts";
import { dolby } from "../codecs/dolby.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createAudioTrack } from "../elementary-streams/audio-track.ts";
import { StreamClock } from "../elementary-streams/clock.ts";
import { findFirstTime } from "../elementary-streams/first-time.ts";
import { ElementaryStream, type TrackReader } from "../elementary-streams/stream.ts";
import { TimeBases } from "../elementary-streams/time-bases.ts";
import { SkipError } from "../discontinuity.ts";
import type { Demuxer, DemuxerOptions, SampleSink, SegmentTiming } from "../samples.ts";
import { createTrackOutput } from "../track-output.ts";
import { readMp3Table } from "./mp3-table.ts";
import { skipId3Tags } from "./tags.ts";

/** How much of a segment is read at a time: the stream holds less than a long segment has. */
const stepBytes = 1 << 20;

const syntaxes = [adts, mpegAudio, dolby] as const;

/**
 * Creates a demuxer of packed audio (RFC 8216 §3.4): AAC in ADTS, MP3, AC-3 or E-AC-3 frames. Each segment
 * has its time in an ID3 tag before the audio; one without continues where the previous one ended, and begins with another source. What
 * the table of the first MP3 segment of a timeline counts as the delay of encoder and decoder is priming.
 */
export function createPackedAudioDemuxer({
  sink,
  timelines,
  onDrop = () => {},
}: Omit<DemuxerOptions, "kinds">): Demuxer {
  const bases = new TimeBases(timelines);
  const clock = new StreamClock(bases);
  const priming = createPriming(sink);
  const output = createTrackOutput(priming.sink);
  let stream = new ElementaryStream();
  let track: TrackReader | null = null;
  let syntax: AudioSyntax | null = null;
  let current: SegmentTiming | null = null;

  const open = (found: AudioSyntax): TrackReader => {
    track?.read(true);
    stream = new ElementaryStream();
    syntax = found;
    const options = { stream, clock, output, language: null };
    return createAudioTrack({ ...options, syntax, onDrop: () => onDrop("audio") });
  };
  const startTimeline = (timing: SegmentTiming): void => {
    track?.read(true);
    track = null;
    syntax = null;
    bases.reset(timing);
  };
  const skip = (seconds: number): void => {
    track?.read(true);
    bases.skip(seconds);
  };
  return {
    read(segment, timing) {
      const { start: afterTags, timestamp } = skipId3Tags(segment);
      const isStart = timing.timeline !== current?.timeline;
      if (isStart) startTimeline(timing);
      else if (timing !== current && timing.skippedS !== undefined) {
        if (timestamp === null) throw new SkipError("a segment after what is left out has no timestamp");
        skip(timing.skippedS);
      }
      const table = timing === current ? null : readMp3Table(segment, afterTags);
      const start = afterTags + (table?.frameBytes ?? 0);
      if (isStart) priming.start(table?.trims?.startS ?? 0);
      current = timing;
      if (start >= segment.length) return;
      const found = syntaxes.find((candidate) => isFrame(candidate, segment, start)) ?? syntax;
      if (!found) throw noAudioError();
      if (track === null || found !== syntax) track = open(found);
      const stamp = timestamp ?? (clock.tryStart() ? null : bases.startStamp());
      const time = stamp === null ? null : { pts: stamp, dts: stamp };
      if (time && clock.beginsTimeBase(time)) track.read(true);
      if (time) clock.note(time);
      clock.start();
      stream.begin(time);
      const { buffer, byteOffset, length } = segment;
      const bytes = Buffer.from(buffer, byteOffset, length);
      for (let at = start; at < length; at += stepBytes) {
        stream.append(bytes, at, Math.min(at + stepBytes, length));
        track.read(false);
      }
    },
    firstTime: (segment) => findFirstTime(createPackedAudioDemuxer, segment),
    flush() {
      track?.read(true);
    },
  };
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
