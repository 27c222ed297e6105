import { damagedError } from "../boxes.ts";
import type { InitTrack } from "./init.ts";
import type { Sample } from "../../samples.ts";

/** A sample as a track run or the sample tables describe it; times are media times in ticks. */
export interface IndexedSample<Track = InitTrack> extends Omit<Sample, "data"> {
  track: Track;
  /** Number of its sample entry, from 1. */
  entry: number;
  /** Where its bytes are: in the segment or in the file that is read. */
  offset: number;
  size: number;
}

/**
 * Lets a sample of audio without a duration begin where the one before ends, if the pause between them is not longer than that one.
 * FFmpeg, with one packet in each fragment, states of every second packet that it begins where it ends.
 */
export function fillPause(sample: IndexedSample, before: IndexedSample | undefined): void {
  if (sample.duration !== 0 || before === undefined) return;
  const pause = sample.dts - before.dts - before.duration;
  if (pause <= 0 || pause > before.duration) return;
  sample.dts -= pause;
  sample.pts -= pause;
  sample.duration = pause;
}

/** Limits of the samples of one segment or file. Without them overlapping samples could have any total size. */
export interface Budget {
  maxSamples: number;
  samples: number;
  bytes: number;
}

/** 6 hours of AAC. */
const maxSegmentSamples = 1 << 20;
/** Of a file: 31 hours of 150 samples a second. As many as the writer takes of each track. */
export const maxFileSamples = 1 << 24;

/** @param bytes Size of the segment or file. */
export function createBudget(bytes: number, maxSamples = maxSegmentSamples): Budget {
  return { maxSamples, samples: maxSamples, bytes };
}

/** @throws ServiceError `upstream_invalid` if the budget is exceeded. */
export function spend(budget: Budget, samples: number, bytes: number): void {
  budget.samples -= samples;
  budget.bytes -= bytes;
  if (budget.samples < 0) throw damagedError(`it has over ${budget.maxSamples} samples`);
  if (budget.bytes < 0) throw damagedError("its samples overlap");
}
