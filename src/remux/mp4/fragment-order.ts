import { ServiceError } from "../../model/errors.ts";
import { type OpenFile, openFile } from "../open-file.ts";
import { createBoxReader } from "./box-reader.ts";
import { type Box, boxesIn, findChild, viewOf } from "./boxes.ts";
import { completeFileBoxes, readRange } from "./read/file-boxes.ts";

/**
 * Counts fragments of the MP4 file at `path` that are
 *
 * - out of order: they have neither a higher number (`mfhd`, ISO/IEC 14496-12 §8.8.5) nor later decode times than the ones before; 0
 *   if most are, as their numbers then mean nothing;
 * - missing: they have no samples, as their boxes are damaged, or the index at the end lists more of them than there are (`mfra`, §8.8.9).
 *   Where that says they are does not count: who adds to a file may leave it as it was. One that is damaged or over 16 MiB lists nothing.
 *
 * @throws ServiceError `upstream_invalid` if a fragment cannot be read; the file system's own errors.
 */
export function countFragmentBreaks(path: string): { outOfOrder: number; missing: number } {
  using file = openFile(path);
  let latest: FragmentPlace | undefined;
  let [fragments, outOfOrder, damaged, listed] = [0, 0, 0, 0];
  for (const box of completeFileBoxes(file.fd, file.size)) {
    if (box.type === "mfra") listed = countListed(file, box);
    if (box.type !== "moof") continue;
    const { isWhole, place } = readFragmentHeader(readRange(file.fd, box));
    if (latest !== undefined && isBefore(place, latest)) outOfOrder += 1;
    if (!isWhole) damaged += 1;
    latest = place;
    fragments += 1;
  }
  return {
    outOfOrder: outOfOrder * 2 <= fragments ? outOfOrder : 0,
    missing: damaged + Math.max(0, listed - fragments),
  };
}

const maxIndexBytes = 16 << 20;

/** Returns how many fragments an `mfra` lists. */
function countListed({ fd }: OpenFile, index: Box): number {
  if (index.end - index.start > maxIndexBytes) return 0;
  const bytes = readRange(fd, index);
  const view = viewOf(bytes);
  const listed = new Set<number>();
  try {
    const [mfra] = boxesIn(view, 0, bytes.length);
    for (const child of mfra === undefined ? [] : boxesIn(view, mfra.body, mfra.end)) {
      if (child.type === "tfra") for (const offset of fragmentOffsets(bytes, child)) listed.add(offset);
    }
  } catch (error) {
    // Players do not need it.
    if (error instanceof ServiceError) return 0;
    throw error;
  }
  return listed.size;
}

/** Yields where the fragments of the entries of a `tfra` are; one may have several. */
function* fragmentOffsets(bytes: Uint8Array, tfra: Box): Generator<number> {
  const { reader, version } = afterFlags(bytes, tfra);
  const trackBytes = 4;
  reader.skip(trackBytes);
  const sizes = reader.u32();
  // The numbers of a track fragment, a run and a sample have 1 to 4 bytes each.
  const numbersBytes = [4, 2, 0].reduce((sum, shift) => sum + 1 + ((sizes >> shift) & 3), 0);
  for (let left = reader.u32(); left > 0; left--) {
    // The time, and where.
    if (version === 1) reader.i64();
    else reader.u32();
    yield version === 1 ? reader.i64() : reader.u32();
    reader.skip(numbersBytes);
  }
}

interface FragmentPlace {
  sequence: number;
  /** Decode times by track. */
  times: Map<number, number>;
}

/** Reads a `moof`, which is whole if it has samples of a track, or states that it has none: it then has only its header (§8.8.6). */
function readFragmentHeader(bytes: Uint8Array): { isWhole: boolean; place: FragmentPlace } {
  const view = viewOf(bytes);
  const times = new Map<number, number>();
  const [moof] = boxesIn(view, 0, bytes.length);
  const children = moof === undefined ? [] : [...boxesIn(view, moof.body, moof.end)];
  const types = children.map(({ type }) => type);
  const isWhole = types.includes("traf") || types.join() === "mfhd";
  let sequence = 0;
  for (const child of children) {
    if (child.type === "mfhd" && child.end - child.body >= 8) sequence = afterFlags(bytes, child).reader.u32();
    const [tfhd, tfdt] = child.type === "traf" ? ["tfhd", "tfdt"].map((type) => findChild(view, child, type)) : [];
    if (tfhd === undefined || tfdt === undefined) continue;
    const { reader, version } = afterFlags(bytes, tfdt);
    times.set(afterFlags(bytes, tfhd).reader.u32(), version === 1 ? reader.i64() : reader.u32());
  }
  return { isWhole, place: { sequence, times } };
}

function afterFlags(bytes: Uint8Array, box: Box) {
  const reader = createBoxReader(bytes, box);
  const { version } = reader.versionAndFlags();
  return { reader, version };
}

function isBefore({ sequence, times }: FragmentPlace, latest: FragmentPlace): boolean {
  if (sequence > latest.sequence) return false;
  return [...times].some(([track, time]) => time <= (latest.times.get(track) ?? -1));
}
