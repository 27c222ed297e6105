import { type Box, damagedError } from "../boxes.ts";
import { boxAt, childBoxes, codeAt, type NumberSource } from "./number-source.ts";
import { checkTrackTables, type TrackTables } from "./check-track-tables.ts";

/** Boxes that readers descend into, wherever they are. */
const containers = new Set("moov trak mdia minf dinf stbl moof traf mvex".split(" "));

/** Tables by what they list; a track has one of each kind. */
const kinds = new Map([
  ["stsz", "sizes"],
  ["stz2", "sizes"],
  ["stts", "durations"],
  ["ctts", "compositions"],
  ["stss", "syncs"],
  ["stsc", "runs"],
  ["stco", "chunks"],
  ["co64", "chunks"],
] as const);

/** A day of one-second fragments of two tracks. */
const maxBoxes = 1 << 21;

/** As many as are read of one segment: 6 hours of AAC. */
const maxFragmentSamples = 1 << 20;

/**
 * Checks what an MP4 says about its samples against its size, so that a few bytes cannot make a reader count
 * to four billion: sample tables (ISO/IEC 14496-12 §8.6, §8.7) of audio and video tracks, and track runs
 * (§8.8.8). Time and memory: the boxes' bytes are read once, through small windows.
 *
 * @param source The file, or a segment of complete boxes.
 * @throws ServiceError `upstream_invalid` if they contradict each other or the size.
 */
export function checkSampleTables(source: NumberSource): void {
  let track: (TrackTables & { isMedia: boolean }) | undefined;
  let samples = 0;
  let fragmentSamples = 0;
  const checkTrack = () => {
    if (track?.isMedia) checkTrackTables(source, track);
  };
  for (const { box, parent } of boxesWithin(source)) {
    const kind = kinds.get(box.type as never);
    if (box.type === "trak") {
      checkTrack();
      track = { isMedia: false };
    } else if (box.type === "hdlr" && track !== undefined) {
      track.isMedia ||= isMediaHandler(source, box);
    } else if (kind !== undefined && track !== undefined) {
      if (parent !== "stbl") throw damagedError(`"${box.type}" is in "${parent}"`);
      if (track[kind] !== undefined) throw damagedError(`a track has two tables of ${kind}`);
      track[kind] = box;
    } else if (box.type === "moof") {
      fragmentSamples = 0;
    } else if (box.type === "trun") {
      const count = countRun(source, box);
      fragmentSamples += count;
      samples += count;
      if (fragmentSamples > maxFragmentSamples) throw damagedError(`a fragment has over ${maxFragmentSamples} samples`);
      if (samples > source.size) throw damagedError(`${source.size} bytes have over ${samples} samples`);
    }
  }
  checkTrack();
}

/** Sample entries of protected tracks (ISO/IEC 14496-12 §8.12, and those of FairPlay). */
const protectedEntries: ReadonlySet<string> = new Set("encv enca drmi drms".split(" "));

/**
 * Returns the type of a sample entry in an MP4 that says that its track is encrypted; undefined: none does.
 * @throws as `checkSampleTables`
 */
export function findProtectedEntry(source: NumberSource): string | undefined {
  for (const { box } of boxesWithin(source)) {
    if (box.type !== "stsd") continue;
    const entries = { body: box.body + 8, end: box.end };
    for (const { type } of childBoxes(source, entries)) if (protectedEntries.has(type)) return type;
  }
  return undefined;
}

/** Yields all boxes in `containers`, parents first, without recursion. */
function* boxesWithin(source: NumberSource): Generator<{ box: Box; parent: string }> {
  const open = [{ type: "file", next: 0, end: source.size }];
  let count = 0;
  for (let parent = open.at(-1); parent !== undefined; parent = open.at(-1)) {
    const box = boxAt(source, parent.next, parent.end);
    // Bytes after the last box of a file are allowed; see `isCompleteMp4`.
    if (box === undefined && parent.type !== "file" && parent.end - parent.next >= 8) {
      throw damagedError(`a box in "${parent.type}" is longer than it`);
    }
    if (box === undefined) {
      open.pop();
      continue;
    }
    if (++count > maxBoxes) throw damagedError(`it has over ${maxBoxes} boxes`);
    parent.next = box.end;
    yield { box, parent: parent.type };
    if (containers.has(box.type)) open.push({ type: box.type, next: box.body, end: box.end });
  }
}

function isMediaHandler(source: NumberSource, { body, end }: Box): boolean {
  if (end - body < 12) return false;
  return ["vide", "soun"].includes(codeAt(source, body + 8));
}

/** Returns the number of samples in a `trun`, whose fields must fit in it. */
function countRun(source: NumberSource, { body, end }: Box): number {
  if (end - body < 8) throw damagedError(`"trun" is too short`);
  const flags = source.u32(body);
  const count = source.u32(body + 4);
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  if (count * fields * 4 > end - body - 8) throw damagedError(`"trun" is too short for ${count} samples`);
  return count;
}
