import { adts } from "../codecs/adts.ts";
import type { TrackSlot } from "../audio-choice.ts";
import { avc } from "../codecs/avc.ts";
import { dolby } from "../codecs/dolby.ts";
import { hevc } from "../codecs/hevc.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createAudioTrack } from "../elementary-streams/audio-track.ts";
import { StreamClock } from "../elementary-streams/clock.ts";
import { createVideoTrack, type VideoTrackOptions } from "../elementary-streams/video-track.ts";
import { ListedEnd } from "../elementary-streams/listed-end.ts";
import { ElementaryStream, type TrackReader } from "../elementary-streams/stream.ts";
import type { TimeBases } from "../elementary-streams/time-bases.ts";
import type { SegmentTiming, TrackKind } from "../samples.ts";
import type { TrackOutput } from "../track-output.ts";
import { PesReader } from "./pes.ts";
import type { PidReader, PidTable } from "./pids.ts";
import type { ChosenStream } from "./streams.ts";
import { unwrap } from "../elementary-streams/timestamps.ts";

interface StreamReadersOptions {
  pids: PidTable;
  bases: TimeBases;
  outputs: (slot: TrackSlot) => TrackOutput;
  /** Called when media are left out. */
  onDrop: (kind: TrackKind) => void;
}

/** A stream of the program that is being read. */
interface OpenStream {
  chosen: ChosenStream;
  stream: ElementaryStream;
  clock: StreamClock;
  listedEnd: ListedEnd;
  pes: PesReader;
  reader: PidReader;
  track: TrackReader;
  output: TrackOutput;
  /** It has had any. */
  hasBytes: boolean;
}

/** How much to read until the first timestamps of all streams of a time base are known. */
const maxWaitBytes = 2 * 1024 * 1024;

/** Creates the readers of the streams of a program. */
export function createStreamReaders(options: StreamReadersOptions) {
  let open: OpenStream[] = [];
  /** How long the segment lasts by its manifest. */
  let segmentS: number | undefined;

  const countHeld = (): number => open.reduce((total, { stream }) => total + stream.length, 0);
  /** Writes what is held back. */
  const finish = (): void => {
    for (const each of open) {
      each.pes.finish();
      each.hasBytes ||= each.stream.length > 0;
    }
    // A time base starts where those end that have started before.
    for (const stream of open.filter(({ clock }) => clock.tryStart())) readAll(stream);
    for (const stream of open) readAll(stream);
    // It may be another codec than the program says.
    const unread = open.filter(({ hasBytes, output }) => hasBytes && output.timescale === 0);
    for (const { chosen } of unread) options.onDrop(chosen.kind);
  };

  return {
    get isEmpty(): boolean {
      return open.length === 0;
    },
    has: (kind: TrackKind): boolean => open.some(({ chosen }) => chosen.kind === kind),
    /** Reads these streams from now on; does nothing if they are the current ones. */
    set(streams: readonly ChosenStream[]): void {
      const isSame = ({ chosen }: OpenStream) =>
        streams.some(({ pid, codec, slot }) => pid === chosen.pid && codec === chosen.codec && slot === chosen.slot);
      if (open.length === streams.length && open.every(isSame)) return;
      finish();
      for (const { chosen, clock, reader } of open) {
        options.pids.delete(chosen.pid, reader);
        clock.close();
      }
      open = streams.map((chosen) => openStream(chosen, options, countHeld));
      for (const { listedEnd } of open) listedEnd.startSegment(segmentS);
    },
    finish,
    /** Notes that the end of a packet is missing. */
    cut(): void {
      for (const { chosen } of open.slice(0, 1)) options.onDrop(chosen.kind);
    },
    /** What is read from now on is of another segment. */
    startSegment({ durationS }: SegmentTiming): void {
      segmentS = durationS;
      for (const { listedEnd } of open) listedEnd.startSegment(durationS);
    },
  };
}

/** @param countHeld Returns the bytes that all streams hold. */
function openStream(
  chosen: ChosenStream,
  { pids, bases, outputs, onDrop }: StreamReadersOptions,
  countHeld: () => number,
): OpenStream {
  const stream = new ElementaryStream();
  const clock = new StreamClock(bases, chosen.slot);
  const onCut = () => onDrop(chosen.kind);
  const listedEnd = new ListedEnd();
  const steps = new PesSteps();
  const output = outputs(chosen);
  const track = createTrack(chosen, { stream, clock, listedEnd, output, onDrop: onCut });
  const pes: PesReader = new PesReader({
    stream,
    onStart() {
      opened.hasBytes ||= stream.length > 0;
      if (!clock.tryStart()) {
        if (countHeld() < maxWaitBytes) return;
        clock.start();
      }
      track.read(false);
    },
    onTime(time) {
      if (clock.beginsTimeBase(time)) {
        pids.startTimes(chosen.pid);
        steps.reset();
        if (listedEnd.isRepeated(time)) onCut();
        readAll(opened);
        listedEnd.startTimes();
      }
      if (steps.isLate(time.dts)) pids.noteGap(chosen.pid);
      clock.note(time);
      listedEnd.note(time);
    },
    onCut,
  });
  const reader: PidReader = {
    read: (bytes, from, to, isStart) => pes.read(bytes, from, to, isStart),
    onLoss() {
      pes.drop();
      onCut();
      if (!clock.tryStart()) return;
      track.read(false);
      track.skip();
    },
    onBreak: onCut,
  };
  pids.set(chosen.pid, reader);
  const opened: OpenStream = { chosen, stream, clock, listedEnd, pes, reader, track, output, hasBytes: false };
  return opened;
}

function readAll({ clock, stream, track }: OpenStream): void {
  if (stream.length === 0) return;
  clock.start();
  track.read(true);
}

const videoSyntaxes = { avc, hevc };
const audioSyntaxes = { adts, "mpeg-audio": mpegAudio, dolby };

type TrackOptions = Omit<VideoTrackOptions, "syntax" | "language">;

function createTrack({ codec, language }: ChosenStream, options: TrackOptions): TrackReader {
  return codec === "avc" || codec === "hevc"
    ? createVideoTrack({ ...options, language, syntax: videoSyntaxes[codec] })
    : createAudioTrack({
        ...options,
        language,
        syntax: audioSyntaxes[codec],
        isSegmentStart: (pts) => options.listedEnd.isFirst(pts),
      });
}

/** So many distances are known. */
const leastSteps = 4;

/** Measures the distances of the decode times of a stream's PES packets. */
class PesSteps {
  #latest: number | null = null;
  #count = 0;
  #longest = 0;

  /** Notes the next decode time; returns whether it comes later than any before lets expect. */
  isLate(dts: number): boolean {
    const step = this.#latest === null ? 0 : unwrap(dts, this.#latest) - this.#latest;
    const isLate = this.#count >= leastSteps && step > 1.5 * this.#longest;
    this.#latest = dts;
    this.#longest = Math.max(this.#longest, step);
    this.#count += 1;
    return isLate;
  }

  /** Other times begin. */
  reset(): void {
    this.#latest = null;
  }
}
