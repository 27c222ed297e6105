import type { AudioRole } from "../model/page-info.ts";
import { nameCodec } from "./codec-name.ts";
import { opusRate, opusSamples } from "./codecs/opus.ts";
import { roleData } from "./mp4/boxes.ts";
import { completeVp8, toQuickTimePcm } from "./mp4/sample-entry.ts";
import type { Sample, SampleSink, TrackFormat, TrackKind } from "./samples.ts";

/** What the source of a track says of it, which the MP4 that it was converted into does not. */
export interface TrackDetails {
  kind: TrackKind;
  /** BCP 47; `null`: unknown. */
  language: string | null;
  name: string;
  /** What it is to listeners; default: unknown. */
  audio_role?: AudioRole | null;
  /** How much at its start is priming of the decoder, and how much earlier than its times it is presented, seconds. */
  delayS: number;
  /** How much at its end is padding of the encoder, seconds. */
  paddingS: number;
  /** How much of that is in the duration of its last sample, seconds. */
  timedPaddingS: number;
}

/** Returns a sink that adds details to the tracks that it passes on: those of a kind in their order. */
export function withDetails(sink: SampleSink, details: readonly TrackDetails[]): SampleSink {
  const delays = new Map<number, ReturnType<typeof createDelay>>();
  const left = [...details];
  const found = new Map<number, TrackDetails>();
  return {
    setFormat(format, track) {
      const known = track === undefined ? takeFirst(left, format.kind) : found.get(track);
      const { language = null, name = "", audio_role, delayS = 0, timedPaddingS = 0 } = known ?? {};
      const described: TrackFormat = { ...format, sampleEntry: completeVp8(toQuickTimePcm(format.sampleEntry)) };
      if (language !== null) described.language = language;
      if (name !== "") described.name = name;
      addRole(described, audio_role);
      if (timedPaddingS > 0) described.paddingTicks = Math.round(timedPaddingS * format.timescale);
      const number = sink.setFormat(described, track);
      if (known !== undefined) found.set(number, known);
      if (delayS > 0 && !delays.has(number)) delays.set(number, createDelay(delayS * format.timescale));
      return number;
    },
    write: (track, sample) => sink.write(track, delays.get(track)?.(sample) ?? sample),
  };
}

/**
 * Returns a sink that moves packets of Opus that have the time of the one before to where that ends: mediabunny gives one time to all of a lace
 * that is the last block of its cluster. At the start of a track, those that a decoder leaves out may have one time.
 */
export function withOpusTimes(sink: SampleSink): SampleSink {
  const tracks = new Map<number, { timescale: number; preSkip: number }>();
  const latest = new Map<number, { dts: number; endTicks: number; startSamples: number }>();
  return {
    setFormat(format, track) {
      const number = sink.setFormat(format, track);
      const { sampleEntry, timescale } = format;
      if (nameCodec(sampleEntry) === "Opus") tracks.set(number, { timescale, preSkip: preSkipOf(sampleEntry) });
      return number;
    },
    write(track, sample) {
      const opus = tracks.get(track);
      if (opus === undefined) return sink.write(track, sample);
      const before = latest.get(track);
      const isSame = before?.dts === sample.dts;
      /** Samples of the packets before, if all of them have the time of the first one. */
      const leftOut = before === undefined ? 0 : isSame ? before.startSamples : Infinity;
      const isStart = leftOut <= opus.preSkip;
      const samples = opusSamples(sample.data);
      const ticksOf = (count: number) => Math.round((count * opus.timescale) / opusRate);
      const dts = isSame && !isStart ? before.endTicks : sample.dts;
      const isLaced = !isStart && (isSame || sample.duration === 0);
      const duration = isLaced ? ticksOf(samples) : sample.duration;
      const endTicks = dts + (isStart ? ticksOf(leftOut + samples) : duration);
      latest.set(track, { dts: sample.dts, endTicks, startSamples: leftOut + samples });
      sink.write(track, { ...sample, dts, pts: sample.pts + dts - sample.dts, duration });
    },
  };
}

/** Returns how many samples a decoder leaves out at the start (Opus in ISOBMFF §4.3.2); all if the sample entry does not say. */
function preSkipOf(sampleEntry: Uint8Array): number {
  const entry = Buffer.from(sampleEntry);
  const at = entry.indexOf("dOps", 0, "latin1");
  return at < 0 || at + preSkipAt + 2 > entry.length ? Infinity : entry.readUInt16BE(at + preSkipAt);
}

/** In the box, from its name on. */
const preSkipAt = 6;

/** More than a stream has audio tracks. */
const placesOfStream = 100;

/** What is said of a stream's audio where it is listed. */
export interface AudioLabel {
  /** BCP 47; `null`: unknown. */
  language: string | null;
  name?: string;
  /** What it is to listeners; `null`: unknown. */
  audio_role?: AudioRole | null;
}

/** Most players show only names. */
const roleNames: Readonly<Partial<Record<AudioRole, string>>> = {
  description: "Audio description",
  commentary: "Commentary",
};

/** Returns the name of audio that has none itself; undefined if it is the programme. */
export function roleNameOf({ audio_role }: AudioLabel): string | undefined {
  return roleNames[audio_role ?? "original"];
}

/**
 * Returns a sink that puts the audio tracks of a stream after those of the streams before it. Its first audio track gets the stream's name, its
 * role, and its language unless the track has one. @param stream Counts the streams.
 */
export function describeAudio(sink: SampleSink, label: AudioLabel, stream: number): SampleSink {
  const { language, name = roleNameOf(label), audio_role } = label;
  let first: number | undefined;
  return {
    setFormat(format, track) {
      const isFirst = format.kind === "audio" && (first === undefined || first === track);
      const place = stream * placesOfStream + (format.place ?? 0);
      const described = { ...format, place };
      if (isFirst) described.language ??= language;
      if (isFirst && name !== undefined) described.name = name;
      if (isFirst) addRole(described, audio_role);
      const number = sink.setFormat(described, track);
      if (isFirst) first = number;
      return number;
    },
    write: (track, sample) => sink.write(track, sample),
  };
}

/** The original needs no word: it is the first. */
function addRole(format: TrackFormat, role: AudioLabel["audio_role"]): void {
  if (role != null && role !== "original") format.userData ??= roleData(role);
}

function takeFirst(details: TrackDetails[], wanted: TrackDetails["kind"]): TrackDetails | undefined {
  const index = details.findIndex(({ kind }) => kind === wanted);
  return index < 0 ? undefined : details.splice(index, 1)[0];
}

/** Creates a function that moves samples to an earlier time, where their priming is before the time of the first one. */
function createDelay(delay: number): (sample: Sample) => Sample {
  const ticks = Math.round(delay);
  let start: number | undefined;
  return (sample) => {
    const pts = sample.pts - ticks;
    start ??= sample.pts;
    const primingTicks = Math.min(sample.duration, start - pts);
    return { ...sample, dts: sample.dts - ticks, pts, ...(primingTicks > 0 && { primingTicks }) };
  };
}
