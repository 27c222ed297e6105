import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { unlessUnreadable } from "../../../model/errors.ts";
import { openFile } from "../../../remux/open-file.ts";
import { trackKinds } from "../../../remux/samples.ts";
import { findHoles, ZeroRuns } from "./holes.ts";
import { openMp4Samples } from "./mp4-samples.ts";
import { places } from "./published-damage.ts";
import { damagedPlaces, SampleCheck } from "./sample-check.ts";

export interface HashedFile {
  sha256: string;
  /** What of its samples is damaged, in words. */
  damage: readonly string[];
}

/**
 * Hashes a file, and looks for damage in it: reads its bytes once, in order.
 * @throws `signal.reason`; the file system's own errors.
 */
export async function hashFile(path: string, signal: AbortSignal): Promise<HashedFile> {
  using check = openDamageCheck(path);
  const hash = createHash("sha256");
  const bufferBytes = 1024 * 1024;
  let spare = Buffer.allocUnsafeSlow(bufferBytes);
  await using file = await open(path, "r");
  let reading = file.read(Buffer.allocUnsafeSlow(bufferBytes));
  for (;;) {
    const { buffer, bytesRead } = await reading;
    signal.throwIfAborted();
    if (bytesRead === 0) return { sha256: hash.digest("hex"), damage: check.findings() };
    // The next bytes are read while these are used.
    reading = file.read(spare);
    reading.catch(() => {});
    const bytes = buffer.subarray(0, bytesRead);
    hash.update(bytes);
    check.take(bytes);
    spare = buffer;
  }
}

/**
 * Opens a file to look for damage in its samples while it is read; in one that is neither MP4, Matroska (WebM), FLV nor AVI it finds none.
 * @throws the file system's own errors.
 */
function openDamageCheck(path: string) {
  using opening = new DisposableStack();
  const file = opening.use(openFile(path));
  const { tracks, streams } = unlessUnreadable(() => openMp4Samples(file)) ?? { tracks: [], streams: [] };
  const checks = streams.map((samples) => new SampleCheck(untilUnreadable(samples)));
  const zeroRuns = new ZeroRuns();
  const opened = opening.move();
  return {
    /** Gets the next bytes of the file, from its start; it is done with them when it returns. @throws the file system's own errors. */
    take(bytes: Buffer): void {
      for (const check of tracks.length > 0 ? checks : [zeroRuns]) check.take(bytes);
    },
    /** Returns what is damaged, in words. */
    findings(): string[] {
      const holes = [...untilUnreadable(findHoles(file, zeroRuns.found))];
      return trackKinds.flatMap((kind) => {
        const found = tracks.filter((track) => track.kind === kind).map(damagedPlaces);
        const count = found.reduce((sum, each) => sum + each, holes.filter((each) => each === kind).length);
        return count === 0 ? [] : [`frames of the ${kind} are damaged at ${places(count)}`];
      });
    },
    [Symbol.dispose]: () => opened.dispose(),
  };
}

/** What cannot be read is reported when the file is inspected. */
function* untilUnreadable<T>(items: Iterable<T>): Generator<T, undefined> {
  const iterator = items[Symbol.iterator]();
  for (;;) {
    const next = unlessUnreadable(() => iterator.next());
    if (next === undefined || next.done === true) return;
    yield next.value;
  }
}
