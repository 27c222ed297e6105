import { unlessUnreadable } from "../../model/errors.ts";
import type { ReadFile } from "../open-file.ts";
import { openFullBox } from "./box-reader.ts";
import { type Box, childrenOf, findChild, firstBox } from "./boxes.ts";
import { fragmentPositions } from "./positions.ts";
import { completeFileBoxes, readRange } from "./read/file-boxes.ts";

/**
 * Counts fragments of an MP4 file that are
 *
 * - out of order: they have neither a higher number (`mfhd`, ISO/IEC 14496-12 §8.8.5) nor later decode times than the ones before. If most
 *   have the number of the one before, these do not count: they are not numbered;
 * - missing: they have no samples, as their boxes are damaged, or the index at the end lists more of them than there are (`mfra`, §8.8.9).
 *   Where that says they are does not count: who adds to a file may leave it as it was. One that is damaged or over 16 MiB lists nothing.
 *
 * @throws ServiceError `upstream_invalid` if a fragment cannot be read.
 */
export function countFragmentBreaks(file: ReadFile): { outOfOrder: number; missing: number } {
  let latest: FragmentPlace | undefined;
  let [fragments, lower, equal, damaged, listed] = [0, 0, 0, 0, 0];
  for (const box of completeFileBoxes(file.fd, file.size)) {
    if (box.type === "mfra") listed = countListed(file, box);
    if (box.type !== "moof") continue;
    const { isWhole, place } = readFragmentHeader(readRange(file.fd, box));
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
  };
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

/** Reads a `moof`, which is whole if it has samples of a track, or states that it has none: it then has only its header (§8.8.6). */
function readFragmentHeader(bytes: Uint8Array): { isWhole: boolean; place: FragmentPlace } {
  const times = new Map<number, number>();
  const children = childrenOf(bytes, firstBox(bytes));
  const types = children.map(({ type }) => type);
  const isWhole = types.includes("traf") || types.join() === "mfhd";
  let sequence = 0;
  for (const child of children) {
    if (child.type === "mfhd" && child.end - child.body >= 8) sequence = openFullBox(bytes, child).u32();
    const [tfhd, tfdt] = child.type === "traf" ? ["tfhd", "tfdt"].map((type) => findChild(bytes, child, type)) : [];
    if (tfhd === undefined || tfdt === undefined) continue;
    times.set(openFullBox(bytes, tfhd).u32(), openFullBox(bytes, tfdt).decodeTime());
  }
  return { isWhole, place: { sequence, times } };
}

function isLater({ times }: FragmentPlace, latest: FragmentPlace): boolean {
  return [...times].every(([track, time]) => time > (latest.times.get(track) ?? -1));
}
