import { ServiceError } from "../../model/errors.ts";
import { firstAudio } from "../audio-choice.ts";
import { TimeBases } from "../elementary-streams/time-bases.ts";
import type { Demuxer, DemuxerOptions, SegmentTiming } from "../samples.ts";
import { createTrackOutputs } from "../track-output.ts";
import { createPacketReader, packetLength } from "./packets.ts";
import { createPidTable, pidOf, type PidTable } from "./pids.ts";
import { createProgramReader, type ProgramReader } from "./program.ts";
import { createStreamReaders } from "./stream-readers.ts";

/**
 * Creates a demuxer of MPEG-2 transport streams (ISO/IEC 13818-1). It reads the first program with media,
 * and leaves out PES packets of which packets are missing. Segments may be cut anywhere; continuity
 * counters may restart with a segment.
 * @throws also, from `flush`, `format_unavailable` if the program has no stream of the wanted kinds.
 */
export function createMpegTsDemuxer(options: DemuxerOptions): Demuxer {
  const { sink, timelines, kinds, audio = firstAudio, onDrop = () => {}, onTracks } = options;
  const bases = new TimeBases(timelines);
  const outputs = createTrackOutputs(sink);
  const pids = createPidTable();
  const streams = createStreamReaders({ pids, bases, outputs, onDrop });
  const program = createProgramReader(pids, { kinds, audio }, (chosen, leftAudio) => {
    streams.set(chosen);
    onTracks?.(chosen.filter(({ kind }) => kind === "audio").length, leftAudio);
  });
  const packets = createPacketReader(createPacketRouter(pids, program), () => streams.cut());
  let current: SegmentTiming | null = null;
  return {
    read(segment, timing) {
      if (timing.timeline !== current?.timeline) {
        if (current !== null) streams.finish();
        bases.reset(timing);
        packets.reset();
        program.reset();
      } else if (timing !== current && timing.skippedS !== undefined) {
        streams.finish();
        bases.skip(timing.skippedS);
        packets.reset();
        program.reset();
      }
      pids.startSegment(current === null || doesFollow(timing, current));
      // A large segment is read in several parts.
      if (timing !== current) streams.startSegment(timing);
      current = timing;
      packets.read(segment);
    },
    flush() {
      packets.reset();
      pids.finish();
      streams.finish();
      if (!streams.isEmpty) return;
      throw program.hasMap
        ? new ServiceError("format_unavailable", `the stream has no ${kinds.join(" and no ")}`)
        : new ServiceError("upstream_invalid", "the transport stream has no program map");
    },
  };
}

/** Whether its packets continue those of `before`: no segment between them is known to be missing. */
function doesFollow(timing: SegmentTiming, before: SegmentTiming): boolean {
  if (timing === before) return true;
  const isNext = timing.sequence === undefined || timing.sequence - (before.sequence ?? NaN) === 1;
  return timing.timeline === before.timeline && isNext;
}

/** Of packets without content. */
const nullPid = 0x1fff;
const maxEarlyBytes = 16 * 1024 * 1024;

/**
 * Returns a function that passes the packet at `at` to the reader of its PID. Packets that come before the first program
 * map are kept until it is known which streams to read.
 * @throws ServiceError, from that function: `upstream_invalid` if over 16 MiB would be kept.
 */
function createPacketRouter(pids: PidTable, program: ProgramReader): (bytes: Buffer, at: number) => void {
  let early: Buffer[] = [];
  /** The streams of the program are known. */
  let isFound = false;
  return (bytes, at) => {
    pids.read(bytes, at);
    if (isFound) return;
    const pid = pidOf(bytes, at);
    if (program.isFound) {
      isFound = true;
      for (const packet of early) pids.read(packet, 0);
      early = [];
    } else if (!program.hasMap && pid !== nullPid && !pids.has(pid)) {
      if ((early.length + 1) * packetLength > maxEarlyBytes) {
        throw new ServiceError(
          "upstream_invalid",
          `the transport stream has no program map in ${maxEarlyBytes} bytes, which is the limit`,
        );
      }
      early.push(Buffer.from(bytes.subarray(at, at + packetLength)));
    }
  };
}
