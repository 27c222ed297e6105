import { createBoxReader } from "../box-reader.ts";
import { type Box, damagedError, viewOf } from "../boxes.ts";
import { type Budget, type IndexedSample, spend } from "./indexed-sample.ts";
import type { InitTrack, SampleDefaults } from "./init.ts";

export interface TrackRunContext {
  /** Undefined: the samples are only counted. */
  track: InitTrack | undefined;
  defaults: SampleDefaults;
  /** What the run's data offset counts from. */
  base: number;
  /** Where the data of the previous run ended. */
  dataEnd: number;
  /** Decode time of the first sample. */
  dts: number;
  budget: Budget;
}

export interface TrackRun {
  count: number;
  /** Offset of the first sample's bytes. */
  dataStart: number;
  samples: IndexedSample[];
  /** Where its data end, and the decode time after its last sample. */
  dataEnd: number;
  dts: number;
}

/** Reads a `trun` (ISO/IEC 14496-12 §8.8.8). */
export function readTrackRun(bytes: Uint8Array, trun: Box, context: TrackRunContext): TrackRun {
  const { track, defaults, base, budget } = context;
  const reader = createBoxReader(bytes, trun);
  const { flags } = reader.versionAndFlags();
  const count = reader.u32();
  const dataStart = flags & 0x1 ? base + reader.i32() : context.dataEnd;
  const firstFlags = flags & 0x4 ? reader.u32() : defaults.flags;
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  if (count * fields * 4 > reader.left) {
    throw damagedError(`"trun" is too short for ${count} samples`);
  }
  spend(budget, count, 0);
  const view = viewOf(bytes);
  const samples: IndexedSample[] = [];
  let at = trun.end - reader.left;
  let { dts } = context;
  let dataEnd = dataStart;
  for (let i = 0; i < count; i++) {
    const duration = flags & 0x100 ? view.getUint32((at += 4) - 4) : defaults.duration;
    const size = flags & 0x200 ? view.getUint32((at += 4) - 4) : defaults.size;
    const defaultFlags = i === 0 ? firstFlags : defaults.flags;
    const sampleFlags = flags & 0x400 ? view.getUint32((at += 4) - 4) : defaultFlags;
    // Signed in both versions of the box: some muxers write negative ones into version 0.
    const composition = flags & 0x800 ? view.getInt32((at += 4) - 4) : 0;
    spend(budget, 0, size);
    if (track !== undefined) {
      const { entry } = defaults;
      const pts = dts + composition;
      // sample_is_non_sync_sample, or sample_depends_on = 1 (§8.8.3.1).
      const isSync = (sampleFlags & 0x01010000) === 0;
      samples.push({ track, entry, offset: dataEnd, size, dts, pts, duration, isSync });
    }
    dts += duration;
    dataEnd += size;
  }
  return { count, dataStart, samples, dataEnd, dts };
}
