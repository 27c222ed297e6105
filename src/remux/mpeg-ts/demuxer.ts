import { ServiceError } from "../../errors.ts";
import { adts } from "../codecs/adts.ts";
import { avc } from "../codecs/avc.ts";
import { dolby } from "../codecs/dolby.ts";
import { hevc } from "../codecs/hevc.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createAudioTrack } from "../elementary-streams/audio-track.ts";
import { createClock, type Clock } from "../elementary-streams/clock.ts";
import { createElementaryStream, type ElementaryStream } from "../elementary-streams/stream.ts";
import type { TrackReader } from "../elementary-streams/track-reader.ts";
import { createVideoTrack } from "../elementary-streams/video-track.ts";
import type { Demuxer, DemuxerOptions } from "../samples.ts";
import { createTrackOutput, type TrackOutput } from "../track-output.ts";
import { createPacketReader } from "./packets.ts";
import { createPesReader, type PesReader } from "./pes.ts";
import { createPidTable } from "./pids.ts";
import { createProgramReader } from "./program.ts";
import type { ChosenStream } from "./streams.ts";

/** A stream of the program that is being read. */
interface OpenStream {
  chosen: ChosenStream;
  stream: ElementaryStream;
  pes: PesReader;
  track: TrackReader;
}

const videoSyntaxes = { avc, hevc };
const audioSyntaxes = { adts, "mpeg-audio": mpegAudio, dolby };

/** How much to read until the first timestamps of all streams of a timeline are known. */
const maxWaitBytes = 2 * 1024 * 1024;

/**
 * Creates a demuxer of MPEG-2 transport streams (ISO/IEC 13818-1). It reads the first program with media,
 * and leaves out PES packets of which packets are missing. Segments may be cut anywhere; continuity
 * counters may restart with a segment.
 * @throws also, from `flush`, `format_unavailable` if the program has no stream of the wanted kinds.
 */
export function createMpegTsDemuxer({
  sink,
  timelines,
  kinds,
  onDrop = () => {},
}: DemuxerOptions): Demuxer {
  const clock = createClock(timelines);
  const outputs = { video: createTrackOutput(sink), audio: createTrackOutput(sink) };
  let timeline: number | null = null;
  let open: OpenStream[] = [];

  /** Starts the clock once the first timestamp of each stream is known; returns whether it runs. */
  const tryStart = (isLast: boolean): boolean => {
    if (clock.isStarted) return true;
    const firsts = open.flatMap(({ stream }) => stream.peekTime()?.pts ?? []);
    const held = open.reduce((total, { stream }) => total + stream.length, 0);
    if (firsts.length < open.length && held < maxWaitBytes && !isLast) return false;
    if (held > 0) clock.start(firsts);
    return clock.isStarted;
  };
  const openStream = (chosen: ChosenStream): OpenStream => {
    const stream = createElementaryStream();
    const onCut = () => onDrop(chosen.kind);
    const track = createTrack(chosen, stream, {
      clock,
      output: outputs[chosen.kind],
      onDrop: onCut,
    });
    const onStart = () => {
      if (tryStart(false)) track.read(false);
    };
    const pes = createPesReader(stream, onStart, onCut);
    pids.set(chosen.pid, {
      read: pes.read,
      onLoss() {
        pes.drop();
        onDrop(chosen.kind);
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
    read(segment, timing) {
      if (timing.timeline !== timeline) {
        if (timeline !== null) finish();
        ({ timeline } = timing);
        clock.reset(timing);
        packets.reset();
        program.reset();
      }
      pids.startSegment();
      packets.read(segment);
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
  common: { clock: Clock; output: TrackOutput; onDrop: () => void },
): TrackReader {
  const options = { ...common, stream, language };
  return codec === "avc" || codec === "hevc"
    ? createVideoTrack({ ...options, syntax: videoSyntaxes[codec] })
    : createAudioTrack({ ...options, syntax: audioSyntaxes[codec] });
}
