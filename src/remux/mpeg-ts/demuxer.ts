import { ServiceError } from "../../model/errors.ts";
import { firstAudio } from "../audio-choice.ts";
import { adts } from "../codecs/adts.ts";
import { frameIn } from "../codecs/audio-syntax.ts";
import { dolby } from "../codecs/dolby.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { findFirstTime } from "../elementary-streams/first-time.ts";
import { TimeBases } from "../elementary-streams/time-bases.ts";
import type { Demuxer, DemuxerOptions, SegmentTiming, TrackKind } from "../samples.ts";
import { createTrackOutputs } from "../track-output.ts";
import { createPacketReader, mediaOf, packetLength, pesStart, streamIdAt } from "./packets.ts";
import { pidOf, PidTable } from "./pids.ts";
import { ProgramReader, type ProgramReaderOptions } from "./program.ts";
import { createStreamReaders } from "./stream-readers.ts";
import { type PesTime, ticksPerSecond, unwrap } from "../elementary-streams/timestamps.ts";
import { longestTimeEnd, readPesTime } from "./pes.ts";

/**
 * Creates a demuxer of MPEG-2 transport streams (ISO/IEC 13818-1). It reads the first program with media,
 * and leaves out PES packets of which packets are missing. Segments may be cut anywhere; continuity
 * counters may restart with a segment.
 * @throws also, from `flush`, `format_unavailable` if the program has no stream of the wanted kinds.
 */
export function createMpegTsDemuxer(options: DemuxerOptions): Demuxer {
  const { sink, timelines, kinds, audio = firstAudio, onDrop = () => {}, onTracks, onUnread, onSubtitles } = options;
  const bases = new TimeBases(timelines);
  const unread = kinds.includes("video") ? undefined : new UnreadStream(bases, onUnread);
  const outputs = createTrackOutputs(sink);
  const pids = new PidTable();
  const streams = createStreamReaders({ pids, bases, outputs, onDrop });
  const onUnreadKind = (kind: TrackKind): void => {
    const isMissing = kinds.includes(kind) && !streams.has(kind);
    if (isMissing) onTracks?.({ kinds: [kind], audio: 0, left: { video: 0, audio: 0 } });
  };
  const onProgram: ProgramReaderOptions["onProgram"] = (chosen, left, subtitles) => {
    streams.set(chosen);
    const found = chosen.map(({ kind }) => kind);
    onTracks?.({ kinds: found, audio: found.filter((kind) => kind === "audio").length, left });
    onSubtitles?.(subtitles);
  };
  const program = new ProgramReader(pids, { kinds, audio, onProgram, onOther: onUnreadKind });
  const route = createPacketRouter(pids, program, onUnreadKind);
  const segments = createSegmentCounter(route, program);
  const packets = createPacketReader(withUnread(segments.read, program, unread), () => streams.cut());
  let current: SegmentTiming | null = null;
  return {
    read(segment, timing) {
      if (timing.timeline !== current?.timeline) {
        if (current !== null) streams.finish();
        bases.reset(timing);
        unread?.reset();
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
      if (timing !== current) {
        segments.start(timing);
        streams.startSegment(timing);
      }
      current = timing;
      packets.read(segment);
    },
    firstTime: (segment) => findFirstTime((first) => createMpegTsDemuxer({ kinds, audio, ...first }), segment),
    flush() {
      packets.reset();
      pids.finish();
      streams.finish();
      for (let lost = segments.takeLost(); lost > 0; lost--) streams.cut();
      if (!streams.isEmpty) return;
      throw program.hasMap
        ? new ServiceError("format_unavailable", `the stream has no ${kinds.join(" and no ")}`)
        : new ServiceError("upstream_invalid", "the transport stream has no program map");
    },
  };
}

/** Returns a function that passes packets on to `read`, and those of the first video stream also to the reader of one that is not read. */
function withUnread(read: (bytes: Buffer, at: number) => void, program: ProgramReader, unread?: UnreadStream) {
  if (unread === undefined) return read;
  return (bytes: Buffer, at: number): void => {
    read(bytes, at);
    if (pidOf(bytes, at) === program.videoPid) unread.read(bytes, at);
  };
}

/** Whether its packets continue those of `before`: no segment between them is known to be missing. */
function doesFollow(timing: SegmentTiming, before: SegmentTiming): boolean {
  if (timing === before) return true;
  const isNext = timing.sequence === undefined || timing.sequence - (before.sequence ?? NaN) === 1;
  return timing.timeline === before.timeline && isNext;
}

/**
 * Counts segments that lack media, from the packets that it passes on to `read`: those without any, and those before the first
 * program map, which each segment must have (RFC 8216 §3.2).
 */
function createSegmentCounter(read: (bytes: Buffer, at: number) => void, program: ProgramReader) {
  let isListed = false;
  /** A PES packet starts in the current segment. */
  let hasMedia = false;
  let lost = 0;
  const start = ({ durationS }: Pick<SegmentTiming, "durationS">): void => {
    if (isListed && !(hasMedia && program.hasMap)) lost += 1;
    isListed = durationS !== undefined;
    hasMedia = false;
  };
  return {
    start,
    read(bytes: Buffer, at: number): void {
      hasMedia ||= streamIdAt(bytes, at) !== undefined;
      read(bytes, at);
    },
    /** Ends the current segment; returns how many it has counted since the last call. */
    takeLost(): number {
      start({});
      const count = lost;
      lost = 0;
      return count;
    },
  };
}

/** Whether the PES packet that starts in the packet at `at` begins with a frame of audio, as encoders begin it. */
function startsWithAudio(bytes: Buffer, at: number): boolean {
  const payload = bytes.subarray(pesStart(bytes, at), at + packetLength);
  const lengthAt = 8;
  return [adts, dolby, mpegAudio].some(
    (syntax) => frameIn(syntax, payload, lengthAt + 1 + (payload[lengthAt] ?? 0)) !== null,
  );
}

/** Of packets without content. */
const nullPid = 0x1fff;
const maxEarlyBytes = 16 * 1024 * 1024;

/**
 * Returns a function that passes the packet at `at` to the reader of its PID. Packets that come before the first program
 * map are kept until it is known which streams to read.
 * @param onUnknown Gets the kind of a stream of which the program does not say what it is, if its packets do.
 * @throws ServiceError, from that function: `upstream_invalid` if over 16 MiB would be kept.
 */
function createPacketRouter(pids: PidTable, program: ProgramReader, onUnknown: (kind: TrackKind) => void) {
  let early: Buffer[] = [];
  /** The streams of the program are known. */
  let isFound = false;
  return (bytes: Buffer, at: number): void => {
    pids.read(bytes, at);
    const { unknownPids } = program;
    if (isFound && unknownPids.size === 0) return;
    const pid = pidOf(bytes, at);
    const streamId = unknownPids.has(pid) ? streamIdAt(bytes, at) : undefined;
    if (streamId !== undefined) {
      unknownPids.delete(pid);
      const kind = mediaOf(streamId);
      if (kind === "video" || kind === "audio") onUnknown(kind);
      if (kind === "other" && startsWithAudio(bytes, at)) onUnknown("audio");
    }
    if (isFound) return;
    if (program.isFound) {
      isFound = true;
      for (const packet of early) pids.read(packet, 0);
      early = [];
    } else if (!program.hasMap && pid !== nullPid && pids.get(pid) === undefined) {
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

/** More are not held until it is known when they are presented. */
const maxHeld = 256;
/** No picture lasts longer. */
const maxStep = ticksPerSecond;

/** Reads the times of a stream that is not read otherwise, by the time bases of those that are. */
class UnreadStream {
  readonly #bases: TimeBases;
  readonly #onUnread: DemuxerOptions["onUnread"];
  #held: { pts: number; step: number }[] = [];
  #latest: PesTime | null = null;
  /** When the earliest one that was found is presented; Infinity: none yet. */
  #earliest = Infinity;
  #hasFallenBack = false;

  constructor(bases: TimeBases, onUnread: DemuxerOptions["onUnread"]) {
    this.#bases = bases;
    this.#onUnread = onUnread;
  }

  read(bytes: Buffer, at: number): void {
    const isStart = ((bytes[at + 1] ?? 0) & 0xc0) === 0x40;
    const start = isStart ? pesStart(bytes, at) : -1;
    const isWhole = start >= 0 && start + longestTimeEnd <= at + packetLength;
    const time = isWhole ? readPesTime(bytes.subarray(start, at + packetLength)) : null;
    if (time !== null) this.#note(time);
  }

  /** Other times begin. */
  reset(): void {
    this.#held = [];
    this.#latest = null;
  }

  #note(time: PesTime): void {
    const step = this.#latest === null ? 0 : unwrap(time.dts, this.#latest.dts) - this.#latest.dts;
    this.#latest = time;
    this.#hasFallenBack ||= step < -maxStep;
    this.#held = [...this.#held.slice(1 - maxHeld), { pts: time.pts, step: step > 0 && step <= maxStep ? step : 0 }];
    this.#held = this.#held.filter(({ pts, step: lasts }) => {
      const start = this.#bases.presentationOf(pts);
      if (start === undefined) return true;
      // It belongs to a time base that those that are read have yet to begin.
      if (this.#hasFallenBack && start < this.#earliest && this.#earliest < Infinity) return false;
      this.#earliest = Math.min(this.#earliest, start);
      this.#onUnread?.({ startS: start / ticksPerSecond, endS: (start + lasts) / ticksPerSecond });
      return false;
    });
  }
}
