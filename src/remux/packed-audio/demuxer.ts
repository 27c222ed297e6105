import { ServiceError } from "../../model/errors.ts";
import { adts } from "../codecs/adts.ts";
import { type AudioSyntax, frameIn, isFrame } from "../codecs/audio-syntax.ts";
import { dolby } from "../codecs/dolby.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createAudioTrack } from "../elementary-streams/audio-track.ts";
import { StreamClock } from "../elementary-streams/clock.ts";
import { findFirstTime } from "../elementary-streams/first-time.ts";
import { ElementaryStream, type TrackReader } from "../elementary-streams/stream.ts";
import { TimeBases } from "../elementary-streams/time-bases.ts";
import { SkipError } from "../discontinuity.ts";
import type { Demuxer, DemuxerOptions, SegmentTiming } from "../samples.ts";
import { createTrackOutput } from "../track-output.ts";
import { skipId3Tags } from "./tags.ts";

/** How much of a segment is read at a time: the stream holds less than a long segment has. */
const stepBytes = 1 << 20;

const syntaxes = [adts, mpegAudio, dolby] as const;

/**
 * Creates a demuxer of packed audio (RFC 8216 §3.4): AAC in ADTS, MP3, AC-3 or E-AC-3 frames. Each segment
 * has its time in an ID3 tag before the audio; one without continues where the previous one ended, and begins with another source.
 */
export function createPackedAudioDemuxer({
  sink,
  timelines,
  onDrop = () => {},
}: Omit<DemuxerOptions, "kinds">): Demuxer {
  const bases = new TimeBases(timelines);
  const clock = new StreamClock(bases);
  const output = createTrackOutput(sink);
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
      if (timing.timeline !== current?.timeline) startTimeline(timing);
      else if (timing !== current && timing.skippedS !== undefined) {
        if (timestamp === null) throw new SkipError("a segment after what is left out has no timestamp");
        skip(timing.skippedS);
      }
      const start = afterTags + (timing === current ? 0 : infoFrameSize(segment, afterTags));
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

/** Returns how long the frame of a file of MP3 at `at` is that has a table (Xing, Info, VBRI) instead of audio; 0: it has audio. */
function infoFrameSize(segment: Uint8Array, at: number): number {
  const frame = frameIn(mpegAudio, segment, at);
  if (frame === null) return 0;
  const start = Buffer.from(segment.subarray(at, at + Math.min(frame.size, maxTableAt))).toString("latin1");
  // The table is after what a frame of audio has, which is empty.
  return /^.{4}\0{9,32}(?:Xing|Info|VBRI)/s.test(start) ? frame.size : 0;
}

const maxTableAt = 40;

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
