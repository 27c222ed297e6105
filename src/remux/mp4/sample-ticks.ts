import { sampleTicksOf } from "../track-output.ts";
import type { IndexedSample } from "./read/indexed-sample.ts";
import type { InitTrack } from "./read/init.ts";
import { SampleList } from "./read/sample-list.ts";

/** Returns the samples of a track, with all times in the ticks that edits of it need; see `sampleTicksOf`. */
export function inSampleTicks(track: InitTrack, samples: Iterable<IndexedSample>): SampleList {
  const [format] = track.formats;
  const timescale = sampleTicksOf(format!);
  const ratio = timescale / format!.timescale;
  if (ratio === 1) return new SampleList(track, samples);
  const scale = (ticks: number) => Math.round(ticks * ratio);
  const formats = track.formats.map(({ edits, ...each }) => ({
    ...each,
    timescale,
    ...(edits && {
      edits: edits.map((edit) => ({
        mediaTicks: scale(edit.mediaTicks),
        durationTicks: scale(edit.durationTicks),
        emptyTicks: scale(edit.emptyTicks),
      })),
    }),
  }));
  const [shiftTicks, startTicks] = [scale(track.shiftTicks), scale(track.startTicks)];
  return new SampleList({ ...track, formats, shiftTicks, startTicks }, scaled(samples, scale));
}

function* scaled(samples: Iterable<IndexedSample>, scale: (ticks: number) => number): Generator<IndexedSample> {
  for (const sample of samples) {
    const { dts, pts, duration } = sample;
    const end = scale(dts + duration);
    yield { ...sample, dts: scale(dts), pts: scale(pts), duration: end - scale(dts) };
  }
}
