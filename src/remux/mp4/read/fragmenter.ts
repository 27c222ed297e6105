import { box, fullBox, u32, u64 } from "../boxes.ts";
import type { PlacedSample } from "./trun.ts";
import { readSpan } from "./file-boxes.ts";

const fragmentBytes = 8 << 20;
const fragmentLength = 4096;

/**
 * Samples that stand in an open file, as fragments (`moof`, `mdat`) in the order of their decode times.
 * @throws ServiceError `upstream_invalid` where a sample is beyond the end of the file.
 */
export function* fragmentSamples(fd: number, samples: PlacedSample[]): Generator<Uint8Array> {
  samples.sort((a, b) => decodeS(a) - decodeS(b));
  let group: PlacedSample[] = [];
  let bytes = 0;
  for (const sample of samples) {
    if (bytes + sample.size > fragmentBytes || group.length === fragmentLength) {
      if (group.length > 0) yield readFragment(fd, group);
      group = [];
      bytes = 0;
    }
    group.push(sample);
    bytes += sample.size;
  }
  if (group.length > 0) yield readFragment(fd, group);
}

function decodeS({ track, dts }: PlacedSample): number {
  return (dts - track.shiftTicks) / track.formats[0]!.timescale;
}

function readFragment(fd: number, samples: readonly PlacedSample[]): Uint8Array {
  const runs = runsOf(samples);
  const { length } = fragmentBox(runs, 0);
  return Buffer.concat([
    fragmentBox(runs, length + 8),
    box(
      "mdat",
      ...runs
        .flat()
        .reduce(joined, [])
        .map(({ start, end }) => readSpan(fd, start, end)),
    ),
  ]);
}

/** Track by track, of one sample entry each. */
function runsOf(samples: readonly PlacedSample[]): PlacedSample[][] {
  const tracks = Map.groupBy(samples, ({ track }) => track);
  return [...tracks.values()].flatMap((ofTrack) => {
    const runs: PlacedSample[][] = [];
    for (const sample of ofTrack) {
      const run = runs.at(-1);
      if (run?.[0]?.entry === sample.entry) run.push(sample);
      else runs.push([sample]);
    }
    return runs;
  });
}

/** @param dataStart Where the samples of the first run start, from the start of this box. */
function fragmentBox(runs: readonly PlacedSample[][], dataStart: number): Uint8Array {
  let at = dataStart;
  const parts = runs.map((run) => {
    const start = at;
    at = run.reduce((sum, { size }) => sum + size, start);
    return trackFragmentBox(run, start);
  });
  return box("moof", fullBox("mfhd", 0, 0, u32(0)), ...parts);
}

/** ISO/IEC 14496-12 §8.8.6 to §8.8.8 and §8.8.12. */
function trackFragmentBox(run: readonly PlacedSample[], start: number): Uint8Array {
  const [{ track, entry, dts }] = run as [PlacedSample];
  const rows = run.flatMap(({ duration, size, isSync, pts, dts: at }) => {
    return [duration, size, isSync ? 0 : 0x10000, pts - at];
  });
  return box(
    "traf",
    fullBox("tfhd", 0, 0x20002, u32(track.id, entry)),
    fullBox("tfdt", 1, 0, u64(dts)),
    fullBox("trun", 1, 0xf01, u32(run.length, start), u32(...rows)),
  );
}

interface Span {
  start: number;
  end: number;
}

/** Samples that stand one behind the other are read at once. */
function joined(spans: Span[], { start, size }: PlacedSample): Span[] {
  const last = spans.at(-1);
  if (last?.end === start) last.end += size;
  else spans.push({ start, end: start + size });
  return spans;
}
