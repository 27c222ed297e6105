import { ServiceError } from "../../errors.ts";
import { adts } from "../codecs/adts.ts";
import type { AudioSyntax } from "../codecs/audio-syntax.ts";
import { createAudioTrack } from "../mpeg-ts/audio-track.ts";
import { dolbyAudio } from "../codecs/dolby-audio.ts";
import { createElementaryStream } from "../mpeg-ts/elementary-stream.ts";
import { readId3Tag } from "./id3.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import type { Demuxer, SegmentTiming, SampleSink } from "../samples.ts";
import type { Timelines } from "../timelines.ts";
import { createTrackOutput } from "../mpeg-ts/track-output.ts";
import { createClock } from "../mpeg-ts/clock.ts";
import type { TrackReader } from "../mpeg-ts/video-track.ts";

const syntaxes = [adts, mpegAudio, dolbyAudio] as const;

/**
 * Packed audio (RFC 8216 §3.4): AAC in ADTS, MP3, AC-3 or E-AC-3 frames, each piece with its time in an
 * ID3 tag in front; a piece without one goes on where the piece before ended.
 */
export function createPackedAudioDemuxer(options: {
  sink: SampleSink;
  timelines: Timelines;
}): Demuxer {
  const clock = createClock(options.timelines);
  const output = createTrackOutput(options.sink);
  let stream = createElementaryStream();
  let track: TrackReader | null = null;
  let syntax: AudioSyntax | null = null;
  let timeline: number | null = null;

  const open = (found: AudioSyntax): TrackReader => {
    track?.read(true);
    stream = createElementaryStream();
    syntax = found;
    return createAudioTrack({ stream, syntax, clock, output, language: null });
  };
  const startTimeline = (place: SegmentTiming): void => {
    track?.read(true);
    track = null;
    syntax = null;
    ({ timeline } = place);
    clock.reset(place);
  };
  return {
    read(piece, place) {
      if (place.timeline !== timeline) startTimeline(place);
      const { start, timestamp } = skipTags(piece);
      if (start >= piece.length) return;
      const found = syntaxes.find((candidate) => isFrame(candidate, piece, start)) ?? syntax;
      if (!found) throw noAudio();
      if (track === null || found !== syntax) track = open(found);
      const isFirst = !clock.isStarted;
      if (isFirst) clock.start([timestamp ?? 0]);
      const stamp = timestamp ?? (isFirst ? 0 : null);
      stream.begin(stamp === null ? null : { pts: stamp, dts: stamp });
      stream.append(piece, start, piece.length);
      track.read(false);
    },
    flush() {
      track?.read(true);
    },
  };
}

/** Whether packed audio begins at `at`. */
export function isPackedAudio(piece: Uint8Array, at: number): boolean {
  return syntaxes.some((syntax) => isFrame(syntax, piece, at));
}

/** Where the audio begins, and when. */
export function skipTags(piece: Uint8Array): { start: number; timestamp: number | null } {
  let start = 0;
  let timestamp: number | null = null;
  for (let tag = readId3Tag(piece, 0); tag; tag = readId3Tag(piece, start)) {
    start += tag.length;
    timestamp ??= tag.timestamp;
  }
  return { start, timestamp };
}

/** One frame at `at`, and behind it the end or another one. */
function isFrame(syntax: AudioSyntax, piece: Uint8Array, at: number): boolean {
  const frame = syntax.frameAt(piece, at, true);
  if (frame === null || frame === "incomplete") return false;
  const end = at + frame.size;
  return end + syntax.headerLength > piece.length || syntax.frameAt(piece, end, true) !== null;
}

function noAudio(): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    "a segment of packed audio begins with no frame of AAC, MP3, AC-3 or E-AC-3",
  );
}
