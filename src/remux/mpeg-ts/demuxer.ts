import { ServiceError } from "../../model/errors.ts";
import { adts } from "../codecs/adts.ts";
import { avc } from "../codecs/avc.ts";
import { dolby } from "../codecs/dolby.ts";
import { hevc } from "../codecs/hevc.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createAudioTrack } from "../elementary-streams/audio-track.ts";
import { createClock, type StreamClock } from "../elementary-streams/clock.ts";
import {
  createElementaryStream,
  type ElementaryStream,
  type TrackReader,
} from "../elementary-streams/stream.ts";
import { createVideoTrack } from "../elementary-streams/video-track.ts";
import type { Demuxer, DemuxerOptions } from "../samples.ts";
import { createTrackOutput, type TrackOutput } from "../track-output.ts";
import { createEarlyPackets } from "./early-packets.ts";
import { createPacketReader } from "./packets.ts";
import { createPesReader, type PesReader } from "./pes.ts";
import { createPidTable, pidOf } from "./pids.ts";
import { createProgramReader } from "./program.ts";
import type { ChosenStream } from "./streams.ts";

/** A stream of the program that is being read. */
interface OpenStream {
  chosen: ChosenStream;
  stream: ElementaryStream;
  clock: StreamClock;
  pes: PesReader;
  track: TrackReader;
}

const videoSyntaxes = { avc, hevc };
const audioSyntaxes = { adts, "mpeg-audio": mpegAudio, dolby };

/** Of packets without content. */
const nullPid = 0x1fff;

/** How much to read until the first timestamps of all streams of a time base are known. */
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
  /** The streams of the program are known; packets before that are kept. */
  let isFound = false;

  /** Returns whether the times of a stream can be converted. */
  const isReady = ({ clock: times }: OpenStream): boolean => {
    if (times.tryStart()) return true;
    const held = open.reduce((total, { stream }) => total + stream.length, 0);
    if (held < maxWaitBytes) return false;
    times.start();
    return true;
  };
  const readAll = ({ clock: times, stream, track }: OpenStream): void => {
    if (stream.length === 0) return;
    times.start();
    track.read(true);
  };
  const openStream = (chosen: ChosenStream): OpenStream => {
    const stream = createElementaryStream();
    const times = clock.open();
    const onCut = () => onDrop(chosen.kind);
    const track = createTrack(chosen, stream, {
      clock: times,
      output: outputs[chosen.kind],
      onDrop: onCut,
    });
    const pes = createPesReader({
      stream,
      onStart() {
        if (isReady(opened)) track.read(false);
      },
      onTime(time) {
        if (times.beginsTimeBase(time)) readAll(opened);
        times.note(time);
      },
      onCut,
    });
    const opened = { chosen, stream, clock: times, pes, track };
    pids.set(chosen.pid, {
      read: pes.read,
      onLoss() {
        pes.drop();
        onDrop(chosen.kind);
        if (!times.tryStart()) return;
        track.read(false);
        track.skip();
      },
    });
    return opened;
  };
  const finish = (): void => {
    for (const { pes } of open) pes.finish();
    // A time base starts where those end that have started before.
    for (const stream of open.filter(({ clock: times }) => times.tryStart())) readAll(stream);
    for (const stream of open) readAll(stream);
  };
  const onProgram = (streams: readonly ChosenStream[]): void => {
    const isSame = ({ chosen }: OpenStream) =>
      streams.some(({ pid, codec }) => pid === chosen.pid && codec === chosen.codec);
    if (open.length === streams.length && open.every(isSame)) return;
    finish();
    for (const { chosen, clock: times } of open) {
      pids.delete(chosen.pid);
      times.close();
    }
    open = streams.map(openStream);
  };
  const pids = createPidTable();
  const program = createProgramReader({ pids, kinds, onProgram });
  const early = createEarlyPackets();
  const packets = createPacketReader((bytes, at) => {
    pids.read(bytes, at);
    if (isFound) return;
    const pid = pidOf(bytes, at);
    if (program.isFound) {
      isFound = true;
      for (const packet of early.take()) pids.read(packet, 0);
    } else if (!program.hasMap && pid !== nullPid && !pids.has(pid)) {
      early.add(bytes, at);
    }
  });

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
  common: { clock: StreamClock; output: TrackOutput; onDrop: () => void },
): TrackReader {
  const options = { ...common, stream, language };
  return codec === "avc" || codec === "hevc"
    ? createVideoTrack({ ...options, syntax: videoSyntaxes[codec] })
    : createAudioTrack({ ...options, syntax: audioSyntaxes[codec] });
}
