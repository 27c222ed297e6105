import { openFile } from "../open-file.ts";
import { createBoxReader } from "./box-reader.ts";
import { boxesIn, findChild, viewOf } from "./boxes.ts";
import { completeFileBoxes, readRange } from "./read/file-boxes.ts";

/**
 * Returns how many fragments of the MP4 file at `path` are out of order: they have neither a higher number (`mfhd`, ISO/IEC
 * 14496-12 §8.8.5) nor later decode times than the ones before. 0 if most are: then their numbers mean nothing.
 * @throws ServiceError `upstream_invalid` if a fragment cannot be read; the file system's own errors.
 */
export function countFragmentsOutOfOrder(path: string): number {
  using file = openFile(path);
  let latest: FragmentPlace | undefined;
  let fragments = 0;
  let count = 0;
  for (const box of completeFileBoxes(file.fd, file.size)) {
    if (box.type !== "moof") continue;
    const place = readPlace(readRange(file.fd, box));
    if (latest !== undefined && isBefore(place, latest)) count += 1;
    latest = place;
    fragments += 1;
  }
  return count * 2 <= fragments ? count : 0;
}

/**
 * Returns how many fragments of the MP4 file at `path` have no samples, as their boxes are damaged, or are missing, by the index at its
 * end (`mfra`, ISO/IEC 14496-12 §8.8.9), if it has one. Where they are does not count: who adds to a file may leave that as it was.
 * @throws ServiceError `upstream_invalid` if the index cannot be read; the file system's own errors.
 */
export function countMissingFragments(path: string): number {
  using file = openFile(path);
  const boxes = [...completeFileBoxes(file.fd, file.size)];
  const fragments = boxes.filter(({ type }) => type === "moof");
  const damaged = fragments.filter((box) => !isFragment(readRange(file.fd, box))).length;
  const index = boxes.findLast(({ type }) => type === "mfra");
  if (index === undefined) return damaged;
  const bytes = readRange(file.fd, index);
  const view = viewOf(bytes);
  const [mfra] = boxesIn(view, 0, bytes.length);
  const listed = new Set<number>();
  for (const child of mfra === undefined ? [] : boxesIn(view, mfra.body, mfra.end)) {
    if (child.type === "tfra") for (const offset of fragmentOffsets(bytes, child)) listed.add(offset);
  }
  return damaged + Math.max(0, listed.size - fragments.length);
}

/** Whether a `moof` has samples of a track, or states that it has none: it then has only its header (§8.8.6). */
function isFragment(bytes: Uint8Array): boolean {
  const view = viewOf(bytes);
  const [moof] = boxesIn(view, 0, bytes.length);
  const types = moof === undefined ? [] : [...boxesIn(view, moof.body, moof.end)].map(({ type }) => type);
  return types.includes("traf") || types.join() === "mfhd";
}

/** Yields where the fragments of the entries of a `tfra` are; one may have several. */
function* fragmentOffsets(bytes: Uint8Array, tfra: Parameters<typeof createBoxReader>[1]): Generator<number> {
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

function readPlace(bytes: Uint8Array): FragmentPlace {
  const view = viewOf(bytes);
  const times = new Map<number, number>();
  const [moof] = boxesIn(view, 0, bytes.length);
  let sequence = 0;
  for (const child of moof === undefined ? [] : boxesIn(view, moof.body, moof.end)) {
    if (child.type === "mfhd" && child.end - child.body >= 8) sequence = afterFlags(bytes, child).reader.u32();
    const [tfhd, tfdt] = child.type === "traf" ? ["tfhd", "tfdt"].map((type) => findChild(view, child, type)) : [];
    if (tfhd === undefined || tfdt === undefined) continue;
    const { reader, version } = afterFlags(bytes, tfdt);
    times.set(afterFlags(bytes, tfhd).reader.u32(), version === 1 ? reader.i64() : reader.u32());
  }
  return { sequence, times };
}

function afterFlags(bytes: Uint8Array, box: Parameters<typeof createBoxReader>[1]) {
  const reader = createBoxReader(bytes, box);
  const { version } = reader.versionAndFlags();
  return { reader, version };
}

function isBefore({ sequence, times }: FragmentPlace, latest: FragmentPlace): boolean {
  if (sequence > latest.sequence) return false;
  return [...times].some(([track, time]) => time <= (latest.times.get(track) ?? -1));
}
