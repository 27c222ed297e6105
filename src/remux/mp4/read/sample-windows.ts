import type { OpenFile } from "../../open-file.ts";
import { damagedError } from "../boxes.ts";
import { readFully } from "./file-boxes.ts";
import type { IndexedSample } from "./indexed-sample.ts";

/** Samples of a file with their bytes. */
interface SampleWindow<Indexed extends IndexedSample = IndexedSample> {
  /** Valid until the next window is read. */
  bytes: Uint8Array;
  /** Their offsets count from the start of `bytes`. */
  samples: Indexed[];
}

const windowBytes = 8 << 20;
const windowSamples = 4096;
const maxSampleBytes = 256 << 20;

/**
 * Reads samples of an open file in their order, at most 8 MiB and 4096 of them at a time, or a single larger one.
 * @throws ServiceError `upstream_invalid` if a sample is not within the file or over 256 MiB.
 */
export function* readWindows<Indexed extends IndexedSample>(
  { fd, size: fileBytes }: OpenFile,
  samples: Iterable<Indexed>,
): Generator<SampleWindow<Indexed>, void> {
  let buffer = Buffer.alloc(0);
  const load = (bytes: number, loaded: Indexed[]): SampleWindow<Indexed> => {
    if (bytes > buffer.length) buffer = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(windowBytes, fileBytes)));
    return { bytes: readSamples(fd, loaded, buffer.subarray(0, bytes)), samples: loaded };
  };
  let window: Indexed[] = [];
  let size = 0;
  for (const sample of samples) {
    checkBounds(sample, fileBytes);
    const isFull = size + sample.size > windowBytes || window.length === windowSamples;
    if (isFull && window.length > 0) {
      yield load(size, window);
      window = [];
      size = 0;
    }
    window.push(sample);
    size += sample.size;
  }
  if (window.length > 0) yield load(size, window);
}

function checkBounds({ offset, size }: IndexedSample, fileBytes: number): void {
  if (offset < 0 || offset + size > fileBytes) {
    throw damagedError(`a sample of ${size} bytes is at ${offset} of ${fileBytes} bytes`);
  }
  if (size > maxSampleBytes) throw damagedError(`a sample has ${size} bytes, the limit is ${maxSampleBytes}`);
}

/** Reads the samples' bytes, adjacent ones at once, and makes their offsets those in the result. */
function readSamples(fd: number, samples: readonly IndexedSample[], into: Buffer): Uint8Array {
  const ranges: { start: number; end: number }[] = [];
  let size = 0;
  for (const sample of samples.toSorted((a, b) => a.offset - b.offset)) {
    const { offset: start } = sample;
    const last = ranges.at(-1);
    if (last?.end === start) last.end += sample.size;
    else ranges.push({ start, end: start + sample.size });
    sample.offset = size;
    size += sample.size;
  }
  let at = 0;
  for (const { start, end } of ranges) {
    readFully(fd, into.subarray(at, at + end - start), start);
    at += end - start;
  }
  return into;
}
