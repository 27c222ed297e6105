import { ServiceError } from "../../../model/errors.ts";
import { openFile } from "../../../remux/open-file.ts";
import { openMp4Samples } from "./mp4-samples.ts";
import { type CheckedSamples, type CodedSamples, damagedPlaces, SampleCheck } from "./sample-check.ts";

/** Looks for damage in the samples of a file while somebody reads it. */
export interface DamageCheck extends Disposable {
  /** Gets the next bytes of the file, from its start; it is done with them when it returns. @throws the file system's own errors. */
  take(bytes: Buffer): void;
  /** Returns what is damaged, in words. */
  findings(): string[];
}

/**
 * Opens a file to look for damage in it; in one that is no MP4 it finds none.
 * @throws the file system's own errors.
 */
export function openDamageCheck(path: string): DamageCheck {
  const file = openFile(path);
  const { tracks, streams } = unlessUnreadable(() => openMp4Samples(file)) ?? noSamples;
  const checks = streams.map((samples) => new SampleCheck(untilUnreadable(samples)));
  return {
    take(bytes) {
      for (const check of checks) check.take(bytes);
    },
    findings() {
      return (["video", "audio"] as const).flatMap((kind) => {
        const found = tracks.filter((track) => track.kind === kind).map(damagedPlaces);
        const count = found.reduce((sum, places) => sum + places, 0);
        const places = count === 1 ? "1 place" : `${count} places`;
        return count === 0 ? [] : [`frames of the ${kind} are damaged at ${places}`];
      });
    },
    [Symbol.dispose]: () => file[Symbol.dispose](),
  };
}

const noSamples: CheckedSamples = { tracks: [], streams: [] };

/** What cannot be read is told when the file is inspected. */
function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

function* untilUnreadable(samples: Iterable<CodedSamples>): Generator<CodedSamples, undefined> {
  const iterator = samples[Symbol.iterator]();
  for (;;) {
    const next = unlessUnreadable(() => iterator.next());
    if (next === undefined || next.done === true) return;
    yield next.value;
  }
}
