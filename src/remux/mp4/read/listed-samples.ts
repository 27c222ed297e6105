import { ServiceError } from "../../../model/errors.ts";
import { openFile, type ReadFile } from "../../open-file.ts";
import { openFullBox } from "../box-reader.ts";
import { type Box, childrenOf, findChild, firstBox, getChild, typeAt, viewOf } from "../boxes.ts";
import { readIndex } from "./movie-index.ts";
import { completeFileBoxes, readRange } from "./file-boxes.ts";
import { readAudioPacket } from "../sample-entry.ts";
import { kindByHandler, readTrackHeader } from "./headers.ts";
import {
  type FragmentContext,
  type FragmentTrack,
  pairFragments,
  readFragmentRuns,
  type TrackRun,
} from "./fragment.ts";
import { noDefaults, readDefaults } from "./init.ts";

interface ListedSamples {
  packets: number;
  bytes: number;
  /** They are PCM: a copy of them may have several in one sample. */
  isPcm: boolean;
}

/**
 * Returns how many samples each track of video or audio has by the index (`stsz`, ISO/IEC 14496-12 §8.7.3) and the fragments (`trun`, §8.8.8) of an MP4 file,
 * by the ids of the tracks in their order. Reads only these.
 * @throws ServiceError `upstream_invalid` if it has no index, or one that is damaged; the file system's own errors.
 */
export function listSamples(file: ReadFile): Map<number, ListedSamples> {
  const index = readIndex(file);
  const defaults = readDefaults(index, firstBox(index));
  const tracks = new Map<number, ListedSamples>();
  for (const trak of childrenOf(index, firstBox(index), "trak")) {
    const media = getChild(index, trak, "mdia");
    const kind = kindByHandler(typeAt(index, getChild(index, media, "hdlr").body + 8));
    if (kind === null) continue;
    const { id } = readTrackHeader(index, getChild(index, trak, "tkhd"));
    tracks.set(id, readSizes(index, getChild(index, media, "minf", "stbl"), kind === "audio"));
  }
  for (const fragment of completeFileBoxes(file.fd, file.size)) {
    if (fragment.type !== "moof") continue;
    const moof = readRange(file.fd, fragment);
    for (const traf of childrenOf(moof, firstBox(moof), "traf")) {
      const header = openFullBox(moof, getChild(moof, traf, "tfhd"));
      const id = header.u32();
      const track = tracks.get(id);
      if (track === undefined) continue;
      // What is before the size: the offset of the data, a sample entry and a duration (§8.8.7).
      if (header.flags & 0x1) header.i64();
      for (const flag of [0x2, 0x8]) if (header.flags & flag) header.u32();
      const size = header.flags & 0x10 ? header.u32() : (defaults.get(id) ?? noDefaults).size;
      for (const trun of childrenOf(moof, traf, "trun")) addRun(moof, trun, size, track);
    }
  }
  return tracks;
}

/**
 * Yields for each fragment of an open file its runs that have samples, in the order of their data. Their offsets count from the start of the
 * file. One that is cut off, and what follows it, is left out.
 * @throws ServiceError `upstream_invalid`; the file system's own errors.
 */
export function* readFileFragments<Track extends FragmentTrack>(
  { fd, size }: ReadFile,
  context: FragmentContext<Track>,
): Generator<TrackRun<Track>[]> {
  for (const { moof: fragment, data } of pairFragments(fd, completeFileBoxes(fd, size))) {
    if (data === undefined) continue;
    const moof = readRange(fd, fragment);
    const { runs, isAbsolute } = readFragmentRuns(moof, firstBox(moof), context);
    const inOrder = runs.filter(({ count }) => count > 0).toSorted((a, b) => a.dataStart - b.dataStart);
    // Offsets of a file that was put together from parts of others count from the start of those.
    const shift = isAbsolute ? data.body - (inOrder[0]?.dataStart ?? 0) : fragment.start;
    for (const { samples } of inOrder) for (const sample of samples) sample.offset += shift;
    yield inOrder;
  }
}

/** @throws ServiceError `internal` if the index of an MP4 file that was written lists other numbers of samples than its tracks got. */
export function assertSampleCounts(path: string, tracks: readonly { samples: number }[]): void {
  using file = openFile(path);
  const listed = [...listSamples(file).values()].map(({ packets }) => packets).toSorted((a, b) => a - b);
  const written = tracks.map(({ samples }) => samples).toSorted((a, b) => a - b);
  if (listed.join() === written.join()) return;
  const message = `the file that was written states ${listed.join(" and ")} samples instead of ${written.join(" and ")}`;
  throw new ServiceError("internal", message, { retryable: false });
}

function readSizes(index: Uint8Array, tables: Box, isAudio: boolean): ListedSamples {
  const table = findChild(index, tables, "stsz");
  const reader = openFullBox(index, table ?? getChild(index, tables, "stz2"));
  const size = reader.u32();
  const count = reader.u32();
  const entries = getChild(index, tables, "stsd");
  const packet = isAudio ? readAudioPacket(index.subarray(entries.body + 8, entries.end)) : undefined;
  const isPcm = packet?.isPcm ?? false;
  if (table === undefined) return { packets: count, bytes: NaN, isPcm };
  if (size === 0) return { packets: count, bytes: sumOf(index, table.end - reader.left, 4, count), isPcm };
  // QuickTime counts the samples of packets whose size the sample entry says.
  const { samples, bytes } = size === 1 && packet !== undefined ? packet : { samples: 1, bytes: size };
  const packets = Math.floor(count / samples);
  return { packets, bytes: packets * bytes, isPcm };
}

/** Adds the samples of a `trun`, of `size` bytes each unless it says that itself. */
function addRun(moof: Uint8Array, trun: Box, size: number, track: ListedSamples): void {
  const reader = openFullBox(moof, trun);
  const { flags } = reader;
  const packets = reader.u32();
  for (const flag of [0x1, 0x4]) if (flags & flag) reader.u32();
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  const first = trun.end - reader.left + (flags & 0x100 ? 4 : 0);
  track.packets += packets;
  track.bytes += flags & 0x200 ? sumOf(moof, first, 4 * fields, packets) : size * packets;
}

/** Returns the sum of `count` numbers of 32 bits, of which each begins `step` bytes after the one before. */
function sumOf(bytes: Uint8Array, first: number, step: number, count: number): number {
  const view = viewOf(bytes);
  const end = Math.min(bytes.length - 3, first + step * count);
  let sum = 0;
  for (let at = first; at < end; at += step) sum += view.getUint32(at);
  return sum;
}
