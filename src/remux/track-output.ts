import { crc32 } from "node:zlib";
import { ServiceError } from "../model/errors.ts";
import type { TrackSlot } from "./audio-choice.ts";
import { coreRateOf, nameCodec } from "./codec-name.ts";
import type { Sample, SampleSink, TrackFormat } from "./samples.ts";

export type TrackOutput = ReturnType<typeof createTrackOutput>;

/**
 * Creates one track of a sink; it is added with its first format and keeps that format's timescale (`timescaleOf`).
 * @param place As in `TrackFormat`.
 */
export function createTrackOutput(sink: SampleSink, place = 0) {
  let track: number | undefined;
  let timescale = 0;
  let current: TrackFormat | undefined;
  return {
    /** Frames of audio that were written last. */
    repeats: createRepeats(),
    /** Ticks per second; 0 before the first format. */
    get timescale(): number {
      return timescale;
    },
    /**
     * Does nothing if it is the same as the current one (`isSameFormat`).
     * @throws ServiceError `format_unavailable` if its codec is another one: few players switch within a track.
     */
    setFormat(format: TrackFormat): void {
      if (isSameFormat(format, current)) return;
      if (current !== undefined) assertSameCodec(current, format);
      current = format;
      timescale ||= timescaleOf(format);
      track = sink.setFormat({ ...format, timescale, place }, track);
    },
    /** Does nothing before the first format. */
    write(sample: Sample): void {
      if (track !== undefined) sink.write(track, sample);
    },
  };
}

/** Whether the sample entry and the edits are the same. */
export function isSameFormat(format: TrackFormat, before: TrackFormat | undefined): boolean {
  if (before === undefined || format.edits !== before.edits) return false;
  return format.sampleEntry === before.sampleEntry || Buffer.compare(format.sampleEntry, before.sampleEntry) === 0;
}

/** Returns a function that creates the tracks of a sink: one for each slot, when it is first called for. */
export function createTrackOutputs(sink: SampleSink): (slot: TrackSlot) => TrackOutput {
  const outputs = new Map<string, TrackOutput>();
  return ({ slot, place }) => {
    const output = outputs.get(slot) ?? createTrackOutput(sink, place);
    outputs.set(slot, output);
    return output;
  };
}

const sampleRateAt = 32;
const leastRate = 7_350;

/**
 * Returns the ticks per second for a track of this format: its own if it states times in ticks, else of audio the samples per second, of AAC with
 * SBR those of its core. Players that use FFmpeg count what an edit list leaves out in samples.
 */
function timescaleOf(format: TrackFormat): number {
  const hasTicks = format.edits !== undefined || format.paddingTicks !== undefined;
  return hasTicks ? format.timescale : sampleTicksOf(format);
}

/** Returns the samples per second of audio, of AAC those of its core; the ticks per second of what does not say how many it has. */
export function sampleTicksOf({ kind, timescale, sampleEntry }: TrackFormat): number {
  if (kind === "video" || sampleEntry.length < sampleRateAt + 2) return timescale;
  const coreRate = coreRateOf(sampleEntry);
  const rate = coreRate ?? sampleEntry[sampleRateAt]! * 256 + sampleEntry[sampleRateAt + 1]!;
  const isUnknown = rate < leastRate || (coreRate === undefined && isTooHigh(timescale, rate));
  return isUnknown ? timescale : rate;
}

/** Whether the rate is `timescale`, which has more than the 16 bits of the field: that has the half, a quarter, or the lower bits of it. */
function isTooHigh(timescale: number, rate: number): boolean {
  return timescale > 0xffff && ([2, 4].includes(timescale / rate) || timescale % 0x10000 === rate);
}

function assertSameCodec(before: TrackFormat, { kind, sampleEntry }: TrackFormat): void {
  const [first, second] = [nameCodec(before.sampleEntry), nameCodec(sampleEntry)];
  if (first === second) return;
  throw new ServiceError(
    "format_unavailable",
    `the ${kind} changes its codec from ${first} to ${second}; a track of an MP4 has one codec`,
  );
}

/** Fewer are at once in what players leave out: a third of a second of AAC. */
const maxFrames = 16;

/**
 * Creates a memory of the latest frames of an audio track: segments of some packagers begin with the last frames of the segment
 * before, which players leave out.
 */
function createRepeats() {
  const latest: { dts: number; hash: number }[] = [];
  /** Which frame would be next if the last one was there before. */
  let next = maxFrames;
  return {
    /**
     * Returns whether the latest frames have this one, at its time.
     * @param dts In the ticks of `add`; `null`: after the one before.
     * @param slack Ticks by which two times of one frame differ at most.
     */
    has(data: Uint8Array, dts: number | null, slack: number): boolean {
      const index = dts === null ? next : latest.findIndex((frame) => Math.abs(frame.dts - dts) <= slack);
      const same = latest[index];
      const isRepeated = same !== undefined && same.hash === crc32(data);
      next = isRepeated ? index + 1 : maxFrames;
      return isRepeated;
    },
    add(data: Uint8Array, dts: number): void {
      latest.push({ dts, hash: crc32(data) });
      if (latest.length > maxFrames) latest.shift();
    },
  };
}

/** When a picture is decoded, media time in seconds, and its bytes. */
interface Picture {
  atS: number;
  data: Uint8Array;
}

/** So many are in 17 s at 60 a second: key pictures are seldom further apart. */
const maxPictures = 1024;
/** Of each picture, at its start: two of the same size that are alike so far are the same. */
const comparedBytes = 512;

/**
 * Creates a memory of the latest pictures of one video track, to find repeated ones: if a segment does not begin with a key picture,
 * mux.js repeats all pictures since the last key picture at its start, and players overwrite those that they have.
 */
export function createPictureMemory() {
  const latest: { atS: number; size: number; hash: number }[] = [];
  const hashOf = ({ data }: Picture) => crc32(data.subarray(0, comparedBytes));
  return {
    /** Returns how many of these, the next ones in the order of decoding, are the latest ones at the same times; 0 unless others follow them. */
    countRepeats(pictures: readonly Picture[]): number {
      const [first] = pictures;
      if (first === undefined || first.atS > (latest.at(-1)?.atS ?? -Infinity)) return 0;
      const from = latest.findIndex(({ atS }) => atS === first.atS);
      const known = from < 0 ? [] : latest.slice(from);
      const isSame = known.every(({ atS, size, hash }, i) => {
        const picture = pictures[i];
        return picture?.atS === atS && picture.data.length === size && hashOf(picture) === hash;
      });
      return isSame && known.length < pictures.length ? known.length : 0;
    },
    add(pictures: readonly Picture[]): void {
      for (const picture of pictures.slice(-maxPictures)) {
        latest.push({ atS: picture.atS, size: picture.data.length, hash: hashOf(picture) });
      }
      latest.splice(0, latest.length - maxPictures);
    },
  };
}
