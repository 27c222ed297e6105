import { unlessUnreadable } from "../../model/errors.ts";
import type { ReadFile } from "../open-file.ts";
import { openFullBox } from "./box-reader.ts";
import { type Box, childrenOf, findChild, firstBox, getChild } from "./boxes.ts";
import { fragmentPositions } from "./positions.ts";
import { completeFileBoxes, readRange } from "./read/file-boxes.ts";
import { readTrackHeader } from "./read/headers.ts";

/** How many fragments of a file are not right, by what is wrong. */
export type FragmentBreaks = Record<"outOfOrder" | "missing" | "unlisted" | "misplaced", number>;

/**
 * Counts fragments of an MP4 file that are
 *
 * - out of order: they have neither a higher number (`mfhd`, ISO/IEC 14496-12 §8.8.5) nor later decode times than the ones before. If most
 *   have the number of the one before, these do not count: they are not numbered;
 * - missing: they have no samples, as their boxes are damaged, or the index at the end lists more of them than there are (`mfra`, §8.8.9).
 *   Where that says they are does not count: who adds to a file may leave it as it was. One that is damaged or over 16 MiB lists nothing;
 * - unlisted: they have samples of a track that no header of the file has (`moov`), which players do not play;
 * - misplaced: they say where in the file their samples are (`tfhd`, §8.8.7), but their media are elsewhere: neither in the box after them
 *   nor in the one before, unless that is of another fragment.
 *
 * @throws ServiceError `upstream_invalid` if a fragment cannot be read.
 */
export function countFragmentBreaks(file: ReadFile): FragmentBreaks {
  let latest: FragmentPlace | undefined;
  let dataStart = Infinity;
  /** Media data before the next fragment that are of no other one. */
  let front: Box | undefined;
  let [fragments, lower, equal, damaged, listed, unlisted, misplaced] = [0, 0, 0, 0, 0, 0, 0];
  const headers: Box[] = [];
  const tracks = new Set<number>();
  for (const box of completeFileBoxes(file.fd, file.size)) {
    if (box.type === "mfra") listed = countListed(file, box);
    if (box.type === "moov") headers.push(box);
    if (box.type === "mdat") {
      front = dataStart === Infinity ? box : undefined;
      if (dataStart !== Infinity && !contains(box, dataStart)) misplaced += 1;
      dataStart = Infinity;
    }
    if (box.type !== "moof") continue;
    const { isWhole, place, sampled, ...fragment } = readFragmentHeader(readRange(file.fd, box));
    dataStart = front !== undefined && contains(front, fragment.dataStart) ? Infinity : fragment.dataStart;
    front = undefined;
    for (const header of headers.splice(0)) for (const id of listedTracks(file, header)) tracks.add(id);
    if (tracks.size > 0 && sampled.some((id) => !tracks.has(id))) unlisted += 1;
    if (latest !== undefined && !isLater(place, latest)) {
      if (place.sequence < latest.sequence) lower += 1;
      if (place.sequence === latest.sequence) equal += 1;
    }
    if (!isWhole) damaged += 1;
    latest = place;
    fragments += 1;
  }
  return {
    outOfOrder: lower + (equal * 2 <= fragments ? equal : 0),
    missing: damaged + Math.max(0, listed - fragments),
    unlisted,
    misplaced,
  };
}

const contains = ({ body, end }: Box, position: number): boolean => position >= body && position < end;

/** Returns the ids of the tracks of a `moov`; none if it is damaged. */
function listedTracks({ fd }: ReadFile, moov: Box): number[] {
  const bytes = readRange(fd, moov);
  const ids = unlessUnreadable(() =>
    childrenOf(bytes, firstBox(bytes), "trak").map((trak) => readTrackHeader(bytes, getChild(bytes, trak, "tkhd")).id),
  );
  return ids ?? [];
}

const maxIndexBytes = 16 << 20;

/** Returns how many fragments an `mfra` lists, which players do not need. */
function countListed({ fd }: ReadFile, index: Box): number {
  if (index.end - index.start > maxIndexBytes) return 0;
  const bytes = readRange(fd, index);
  const offsets = unlessUnreadable(() =>
    [...fragmentPositions(bytes)].map(({ at, isLong }) =>
      Number(isLong ? bytes.readBigUInt64BE(at) : bytes.readUInt32BE(at)),
    ),
  );
  // GStreamer lists one at 0, where no fragment is.
  return new Set(offsets?.filter((offset) => offset > 0)).size;
}

interface FragmentPlace {
  sequence: number;
  /** Decode times by track. */
  times: Map<number, number>;
}

/**
 * Reads a `moof`, which is whole if it has samples of a track, or states that it has none: it then has only its header (§8.8.6). `sampled`: the
 * ids of tracks that it has samples of; `dataStart`: where in the file it says that they begin, Infinity if it does not.
 */
function readFragmentHeader(bytes: Uint8Array) {
  const times = new Map<number, number>();
  const sampled: number[] = [];
  let dataStart = Infinity;
  const children = childrenOf(bytes, firstBox(bytes));
  const types = children.map(({ type }) => type);
  const isWhole = types.includes("traf") || types.join() === "mfhd";
  let sequence = 0;
  for (const child of children) {
    if (child.type === "mfhd" && child.end - child.body >= 8) sequence = openFullBox(bytes, child).u32();
    const find = (type: string) => (child.type === "traf" ? findChild(bytes, child, type) : undefined);
    const [tfhd, tfdt, trun] = [find("tfhd"), find("tfdt"), find("trun")];
    if (tfhd === undefined) continue;
    const header = openFullBox(bytes, tfhd);
    const id = header.u32();
    if (tfdt !== undefined) times.set(id, openFullBox(bytes, tfdt).decodeTime());
    const run = trun && openFullBox(bytes, trun);
    if (run === undefined || run.u32() === 0) continue;
    sampled.push(id);
    if (header.flags & 0x1) dataStart = Math.min(dataStart, header.i64() + (run.flags & 0x1 ? run.i32() : 0));
  }
  return { isWhole, place: { sequence, times }, sampled, dataStart };
}

function isLater({ times }: FragmentPlace, latest: FragmentPlace): boolean {
  return [...times].every(([track, time]) => time > (latest.times.get(track) ?? -1));
}
