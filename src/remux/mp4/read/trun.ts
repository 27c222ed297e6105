import { createBoxReader } from "../box-reader.ts";
import { type Box, damaged, viewOf } from "../boxes.ts";
import type { InitTrack, SampleDefaults } from "./init.ts";

/** A sample that is still in its piece; times are media times, ticks. */
export interface PlacedSample {
  track: InitTrack;
  /** Number of its sample entry, from 1. */
  entry: number;
  /** Where it is in the piece. */
  start: number;
  size: number;
  dts: number;
  pts: number;
  duration: number;
  isSync: boolean;
}

/** What the samples of one piece may still take up, so that overlapping ones cannot swell without end. */
export interface Budget {
  samples: number;
  bytes: number;
}

/** Six hours of AAC in one piece. */
const maxSamples = 1 << 20;

export function createBudget(bytes: number): Budget {
  return { samples: maxSamples, bytes };
}

/** @throws ServiceError `upstream_invalid` where that is too much. */
export function spend(budget: Budget, samples: number, bytes: number): void {
  budget.samples -= samples;
  budget.bytes -= bytes;
  if (budget.samples < 0) throw damaged(`it has more than ${maxSamples} samples in one piece`);
  if (budget.bytes < 0) throw damaged("its samples are larger than the piece that they are in");
}

export interface RunContext {
  /** `undefined`: the samples are only counted. */
  track: InitTrack | undefined;
  defaults: SampleDefaults;
  /** What the run's own place counts from. */
  base: number;
  /** Where the run before it ended. */
  dataEnd: number;
  /** Decode time of its first sample. */
  dts: number;
  budget: Budget;
}

export interface TrackRun {
  count: number;
  start: number;
  samples: PlacedSample[];
  /** Where the next one goes on. */
  dataEnd: number;
  dts: number;
}

/** Reads `trun` (ISO/IEC 14496-12 §8.8.8). */
export function readTrackRun(piece: Uint8Array, trun: Box, context: RunContext): TrackRun {
  const { track, defaults, base, budget } = context;
  const reader = createBoxReader(piece, trun);
  const { flags } = reader.versionAndFlags();
  const count = reader.u32();
  const start = flags & 0x1 ? base + reader.i32() : context.dataEnd;
  const firstFlags = flags & 0x4 ? reader.u32() : defaults.flags;
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  if (count * fields * 4 > reader.left) throw damaged(`"trun" is too short for ${count} samples`);
  spend(budget, count, 0);
  const view = viewOf(piece);
  const samples: PlacedSample[] = [];
  let at = trun.end - reader.left;
  let { dts } = context;
  let dataEnd = start;
  for (let i = 0; i < count; i++) {
    const duration = flags & 0x100 ? view.getUint32((at += 4) - 4) : defaults.duration;
    const size = flags & 0x200 ? view.getUint32((at += 4) - 4) : defaults.size;
    const usual = i === 0 ? firstFlags : defaults.flags;
    const sampleFlags = flags & 0x400 ? view.getUint32((at += 4) - 4) : usual;
    // Signed in both versions of the box: some write negative ones into version 0.
    const composition = flags & 0x800 ? view.getInt32((at += 4) - 4) : 0;
    spend(budget, 0, size);
    if (track !== undefined) {
      const pts = dts + composition;
      const isSync = (sampleFlags & 0x01010000) === 0;
      const { entry } = defaults;
      samples.push({ track, entry, start: dataEnd, size, dts, pts, duration, isSync });
    }
    dts += duration;
    dataEnd += size;
  }
  return { count, start, samples, dataEnd, dts };
}
