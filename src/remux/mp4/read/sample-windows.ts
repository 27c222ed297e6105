import type { ReadFile } from "../../open-file.ts";
import { damagedError } from "../boxes.ts";
import { readFully } from "./file-boxes.ts";
import type { IndexedSample } from "./indexed-sample.ts";

/** Samples of a file that are read together. */
export interface SampleWindow<Indexed extends IndexedSample = IndexedSample> {
  /** Where the last of their bytes ends in the file. */
  end: number;
  /**
   * Reads them, once: their offsets then count from the start of `bytes`, which are valid until the next window is read.
   *
   * @throws ServiceError `upstream_invalid` if the file ends before; the file system's own errors.
   */
  read(): { bytes: Uint8Array; samples: Indexed[] };
}

const windowBytes = 8 << 20;
const windowSamples = 4096;
const maxSampleBytes = 256 << 20;

/**
 * Yields the samples of an open file in their order, at most 8 MiB and 4096 of them at a time, or a single larger one.
 *
 * @param spanAt Returns how far after its first one and those before it, which end there, those of a window end at most; default: anywhere.
 * @throws ServiceError `upstream_invalid` if a sample is not within the file or over 256 MiB.
 */
export function* readWindows<Indexed extends IndexedSample>(
  { fd, size: fileBytes }: ReadFile,
  samples: Iterable<Indexed>,
  spanAt = (_position: number) => Infinity,
): Generator<SampleWindow<Indexed>, void> {
  let buffer = Buffer.alloc(0);
  const windowOf = (found: Indexed[], bytes: number): SampleWindow<Indexed> => ({
    end: Math.max(...found.map(({ offset, size }) => offset + size)),
    read() {
      if (bytes > buffer.length) buffer = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(windowBytes, fileBytes)));
      return { bytes: readSamples(fd, found, buffer.subarray(0, bytes)), samples: found };
    },
  });
  let window: Indexed[] = [];
  let size = 0;
  let reached = 0;
  let maxEnd = Infinity;
  for (const sample of samples) {
    checkBounds(sample, fileBytes);
    const end = sample.offset + sample.size;
    const isFull = size + sample.size > windowBytes || window.length === windowSamples || end > maxEnd;
    if (isFull && window.length > 0) {
      yield windowOf(window, size);
      window = [];
      size = 0;
    }
    reached = Math.max(reached, end);
    if (window.length === 0) maxEnd = reached + spanAt(reached);
    window.push(sample);
    size += sample.size;
  }
  if (window.length > 0) yield windowOf(window, size);
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
