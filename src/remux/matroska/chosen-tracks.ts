import { type NumberSource, numbersInFile } from "../mp4/read/number-source.ts";
import { type Block, readBlocks } from "./blocks.ts";
import { elementAt, findElement, ids, textIn } from "./elements.ts";
import { type MatroskaHeader, type MatroskaTrack, readHeader } from "./tracks.ts";

/** A Matroska file that is open, and which of its tracks are read. */
export interface ChosenTracks {
  fd: number;
  source: NumberSource;
  header: MatroskaHeader;
  tracks: readonly MatroskaTrack[];
}

/** Returns the tracks of an open file that have these numbers; undefined if it is no Matroska file or lacks one. */
export function selectTracks(fd: number, numbers: readonly number[]): ChosenTracks | undefined {
  const all = selectAll(fd);
  const tracks = numbers.flatMap((number) => all?.tracks.find((track) => track.number === number) ?? []);
  return all && tracks.length === numbers.length ? { ...all, tracks } : undefined;
}

/** Returns all tracks of an open file; undefined if it is no Matroska file. */
export function selectAll(fd: number): ChosenTracks | undefined {
  const source = numbersInFile(fd);
  const header = readHeader(source);
  return header && { fd, source, header, tracks: header.tracks };
}

/** Returns the type of a file that has been selected. */
export function readDocType({ source }: ChosenTracks): "webm" | "matroska" {
  const type = findElement(source, elementAt(source, 0, source.size), ids.docType);
  return type !== undefined && textIn(source, type) === "webm" ? "webm" : "matroska";
}

/** Yields the blocks of the chosen tracks, in order. @throws ServiceError as `readBlocks`. */
export function* chosenBlocks({ source, header, tracks }: ChosenTracks): Generator<Block, undefined> {
  const numbers = new Set(tracks.map(({ number }) => number));
  for (const block of readBlocks(source, header)) if (numbers.has(block.track)) yield block;
}

/** How a track of an open file ends. */
export interface TrackEnd {
  /** How much of its last frames is not presented, nanoseconds. */
  paddingNs: number;
  /** Whether the duration that its last block is read with includes that: some writers leave it out. */
  isCounted: boolean;
}

/** Returns the ends of the tracks that have blocks, by number. @throws ServiceError as `readBlocks`. */
export function readEnds(file: ChosenTracks): Map<number, TrackEnd> {
  const lasts = new Map<number, { block: Block; step: number }>();
  for (const block of chosenBlocks(file)) {
    const step = block.ticks - (lasts.get(block.track)?.block.ticks ?? block.ticks);
    lasts.set(block.track, { block, step });
  }
  const { timestampScale } = file.header;
  return new Map(
    [...lasts].map(([track, { block, step }]) => {
      const { discardNs, others, body } = block;
      // A duration before the block, as GStreamer writes it, is not read by mediabunny.
      const isRead = others?.some(({ id, end }) => id === ids.blockDuration && end > body) ?? false;
      const duration = isRead ? block.duration : null;
      const withoutNs = Math.abs(((duration ?? step) - step) * timestampScale + discardNs);
      const isCounted = duration === null || Math.abs(duration - step) * timestampScale <= withoutNs;
      return [track, { paddingNs: Math.max(0, discardNs), isCounted }];
    }),
  );
}
