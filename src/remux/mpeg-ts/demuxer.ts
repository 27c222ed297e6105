import { ServiceError } from "../../errors.ts";
import { adts } from "../codecs/adts.ts";
import { createAudioTrack } from "./audio-track.ts";
import { avc } from "../codecs/avc.ts";
import { dolbyAudio } from "../codecs/dolby-audio.ts";
import { createElementaryStream, type ElementaryStream } from "./elementary-stream.ts";
import { hevc } from "../codecs/hevc.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import type { Demuxer, SampleSink } from "../samples.ts";
import type { Timelines } from "../timelines.ts";
import { createTrackOutput, type TrackOutput } from "./track-output.ts";
import { createClock, type Clock } from "./clock.ts";
import { createPacketReader } from "./packets.ts";
import { createPesReader, type PesReader } from "./pes.ts";
import { createPidTable } from "./pids.ts";
import { createProgramReader } from "./program.ts";
import type { ChosenStream, Kind } from "./streams.ts";
import { createVideoTrack, type TrackReader } from "./video-track.ts";

export interface MpegTsDemuxerOptions {
  sink: SampleSink;
  timelines: Timelines;
  /** What is wanted of the stream; a kind that it does not have is left out. */
  kinds: readonly Kind[];
}

/** A stream of the program that is being read. */
interface OpenStream {
  chosen: ChosenStream;
  stream: ElementaryStream;
  pes: PesReader;
  track: TrackReader;
}

const videoSyntaxes = { avc, hevc };
const audioSyntaxes = { adts, "mpeg-audio": mpegAudio, dolby: dolbyAudio };

/** So much is read until all streams of a timeline must have begun, bytes. */
const maxWait = 2 * 1024 * 1024;

/**
 * MPEG-2 transport streams (ISO/IEC 13818-1): the first program with media, of it the first usable
 * stream of each wanted kind. PES packets with missing packets are left out. Pieces may be cut
 * anywhere; a packet counter may begin anew with a piece.
 */
export function createMpegTsDemuxer(options: MpegTsDemuxerOptions): Demuxer {
  const { sink, timelines, kinds } = options;
  const clock = createClock(timelines);
  const outputs = { video: createTrackOutput(sink), audio: createTrackOutput(sink) };
  let timeline: number | null = null;
  let open: OpenStream[] = [];

  /** The streams of a timeline are read once it is known when each begins. */
  const tryStart = (isLast: boolean): boolean => {
    if (clock.isStarted) return true;
    const firsts = open.flatMap(({ stream }) => stream.peekTime()?.pts ?? []);
    const held = open.reduce((total, { stream }) => total + stream.length, 0);
    if (firsts.length < open.length && held < maxWait && !isLast) return false;
    if (held > 0) clock.start(firsts);
    return clock.isStarted;
  };
  const openStream = (chosen: ChosenStream): OpenStream => {
    const stream = createElementaryStream();
    const track = createTrack(chosen, stream, clock, outputs[chosen.kind]);
    const pes = createPesReader(stream, () => {
      if (tryStart(false)) track.read(false);
    });
    pids.set(chosen.pid, {
      read: pes.read,
      onLoss() {
        pes.drop();
        if (!clock.isStarted) return;
        track.read(false);
        track.skip();
      },
    });
    return { chosen, stream, pes, track };
  };
  const finish = (): void => {
    for (const { pes } of open) pes.finish();
    if (!tryStart(true)) return;
    for (const { track } of open) track.read(true);
  };
  const onProgram = (streams: readonly ChosenStream[]): void => {
    const isSame = ({ chosen }: OpenStream) =>
      streams.some(({ pid, codec }) => pid === chosen.pid && codec === chosen.codec);
    if (open.length === streams.length && open.every(isSame)) return;
    finish();
    for (const { chosen } of open) pids.delete(chosen.pid);
    open = streams.map(openStream);
  };
  const pids = createPidTable();
  const program = createProgramReader({ pids, kinds, onProgram });
  const packets = createPacketReader(pids.read);

  return {
    read(piece, place) {
      if (place.timeline !== timeline) {
        if (timeline !== null) finish();
        ({ timeline } = place);
        clock.reset(place);
        packets.reset();
        program.reset();
      }
      pids.startPiece();
      packets.read(piece);
    },
    flush() {
      finish();
      if (open.length > 0) return;
      throw program.hasMap
        ? new ServiceError("format_unavailable", `the stream has no ${kinds.join(" and no ")}`)
        : new ServiceError("upstream_invalid", "the transport stream has no program map");
    },
  };
}

function createTrack(
  { codec, language }: ChosenStream,
  stream: ElementaryStream,
  clock: Clock,
  output: TrackOutput,
): TrackReader {
  const options = { stream, clock, output, language };
  return codec === "avc" || codec === "hevc"
    ? createVideoTrack({ ...options, syntax: videoSyntaxes[codec] })
    : createAudioTrack({ ...options, syntax: audioSyntaxes[codec] });
}
