import { toQuickTimePcm } from "./mp4/pcm-entry.ts";
import type { Sample, SampleSink, TrackFormat, TrackKind } from "./samples.ts";

/** What the source of a track says of it, which the MP4 that it was converted into does not. */
export interface TrackDetails {
  kind: TrackKind;
  /** BCP 47; `null`: unknown. */
  language: string | null;
  name: string;
  /** How much at its start is priming of the decoder, and how much earlier than its times it is presented, seconds. */
  delayS: number;
}

/** Returns a sink that adds details to the tracks that it passes on. */
export function withDetails(sink: SampleSink, details: readonly TrackDetails[]): SampleSink {
  const delays = new Map<number, ReturnType<typeof createDelay>>();
  return {
    setFormat(format, track) {
      const { language = null, name = "", delayS = 0 } = details.find(({ kind }) => kind === format.kind) ?? {};
      const described: TrackFormat = { ...format, sampleEntry: toQuickTimePcm(format.sampleEntry) };
      if (language !== null) described.language = language;
      if (name !== "") described.name = name;
      const number = sink.setFormat(described, track);
      if (delayS > 0 && !delays.has(number)) delays.set(number, createDelay(delayS * format.timescale));
      return number;
    },
    write: (track, sample) => sink.write(track, delays.get(track)?.(sample) ?? sample),
  };
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
