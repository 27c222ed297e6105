import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { unlessUnreadable } from "../../../model/errors.ts";
import { openFile, type OpenFile } from "../../../remux/open-file.ts";
import { trackKinds } from "../../../remux/samples.ts";
import { findHoles, ZeroRuns } from "./holes.ts";
import { places } from "./published-damage.ts";
import { type CheckedSamples, CheckedTrack, type CodedSamples, damagedPlaces, SampleCheck } from "./sample-check.ts";
import { firstBox } from "../../../remux/mp4/boxes.ts";
import { nalLengthBytes } from "../../../remux/mp4/joins.ts";
import { completeFileBoxes, readRange } from "../../../remux/mp4/read/file-boxes.ts";
import { type FragmentContext, readFileFragments } from "../../../remux/mp4/read/fragment.ts";
import { createBudget, maxFileSamples } from "../../../remux/mp4/read/indexed-sample.ts";
import { type InitTrack, readAllTracks } from "../../../remux/mp4/read/init.ts";
import { readSamplePlaces, type SamplePlaces } from "../../../remux/mp4/read/sample-tables.ts";

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
 * Opens a file to look for damage in its samples while somebody reads it; in one that is neither MP4, Matroska (WebM), FLV nor AVI it finds none.
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

/**
 * Types of sample entries of codecs without NAL units whose samples have no long runs of zeros. PCM may, and so may lossless codecs, which
 * can store silence as it is, and AC-3 and E-AC-3, whose frames are filled with zeros before a checksum.
 */
const codecs = new Set("mp4a Opus .mp3 mp4v vp08 vp09 av01".split(" "));

/** Those whose samples have NAL units with lengths, and are not encrypted. */
const framed = new Set("avc1 avc3 hvc1 hev1".split(" "));

/**
 * Opens the samples of an MP4 file that are of codecs that compress: for each track those that its index lists, then those of all tracks
 * that its fragments list, in their order in the file as far as it has one. Reads fragments when their samples are wanted. None of another file.
 * @throws ServiceError `upstream_invalid`, also from the samples; the file system's own errors.
 */
function openMp4Samples(file: OpenFile): CheckedSamples {
  const boxes = [...completeFileBoxes(file.fd, file.size)];
  const index = boxes.find(({ type }) => type === "moov");
  if (index === undefined) return { tracks: [], streams: [] };
  const bytes = readRange(file.fd, index);
  const tracks = readAllTracks(bytes, firstBox(bytes));
  const budget = createBudget(file.size, maxFileSamples);
  const isIndexed = !boxes.some(({ type }) => type === "moof");
  const selections = new Map(tracks.map((track) => [track, createSelection(track, isIndexed)]));
  return {
    tracks: [...selections.values()].map(({ checked }) => checked),
    streams: [
      ...[...selections].map(([track, { select }]) => select(readSamplePlaces(bytes, track, budget))),
      readFragments(file, { tracks, budget }, (track, samples) => selections.get(track)!.select([samples])),
    ],
  };
}

/** @param isIndexed The places of its samples do not depend on fragments, which may say wrongly where their media are. */
function createSelection({ formats }: InitTrack, isIndexed: boolean) {
  const areFramed = formats.every(({ sampleEntry }) => framed.has(typeOf(sampleEntry)));
  const checked = new CheckedTrack(formats[0]!.kind, isIndexed && areFramed);
  const lengths = formats.map(({ sampleEntry }) => lengthBytesOf(sampleEntry));
  const isAv1 = formats.some(({ sampleEntry }) => typeOf(sampleEntry) === "av01");
  return {
    checked,
    *select(all: Iterable<SamplePlaces>): Generator<CodedSamples> {
      for (const { entry, ...where } of all) {
        const lengthBytes = lengths[entry - 1] ?? null;
        if (lengthBytes !== null) yield { ...where, track: checked, lengthBytes, isAv1 };
      }
    },
  };
}

function lengthBytesOf(sampleEntry: Uint8Array): number | null {
  return codecs.has(typeOf(sampleEntry)) ? 0 : nalLengthBytes(sampleEntry);
}

const typeOf = (sampleEntry: Uint8Array): string => Buffer.from(sampleEntry).toString("latin1", 4, 8);

/** Yields the samples of the fragments, with their places in the file. */
function* readFragments(
  file: OpenFile,
  context: Pick<FragmentContext, "tracks" | "budget">,
  select: (track: InitTrack, samples: SamplePlaces) => Iterable<CodedSamples>,
): Generator<CodedSamples> {
  for (const { samples } of readFileFragments(file, { ...context, nextDts: new Map() }).flatMap((runs) => runs)) {
    if (samples[0] === undefined) continue;
    const { track, entry } = samples[0];
    const [offsets, sizes] = [new Float64Array(samples.length), new Uint32Array(samples.length)];
    for (const [i, sample] of samples.entries()) [offsets[i], sizes[i]] = [sample.offset, sample.size];
    yield* select(track, { entry, count: samples.length, offsets, sizes });
  }
}
