import {
  damagedMatroskaError,
  type Element,
  elementAt,
  elementsIn,
  findElement,
  ids,
  readElement,
  readVarInt,
  signedIn,
  textIn,
  unsignedIn,
} from "./elements.ts";
import { numbersInFile, type NumberSource } from "../mp4/read/number-source.ts";
import { type MatroskaHeader, type MatroskaTrack, readHeader } from "./tracks.ts";

/** A SimpleBlock or BlockGroup (RFC 9559 §10): one or more frames. */
export interface Block {
  track: number;
  /** When it is presented, but for the delay of the codec; ticks of the file. */
  ticks: number;
  isKey: boolean;
  flags: number;
  /** Where its frames are in the file, with the sizes of a lace. */
  body: number;
  end: number;
  /** Ticks; `null`: not stated. */
  duration: number | null;
  /** How much of its end is not presented, nanoseconds. */
  discardNs: number;
  /** The other elements of its group; `null`: it is a SimpleBlock. */
  others: Element[] | null;
}

/** Elements of a Segment that follow each other. */
interface SegmentPart {
  at: number;
  end: number;
  /** Of the cluster that they begin in, ticks; 0: they begin with one. */
  timestamp: number;
}

/**
 * Yields the blocks of a file or of a part of it, in order. Returns the time of the last cluster, ticks.
 * @throws ServiceError `upstream_invalid` if an element is damaged or cut off, or another Segment follows: its times are its own.
 */
export function* readBlocks(
  source: NumberSource,
  { segment }: Pick<MatroskaHeader, "segment">,
  part: SegmentPart = { at: segment.body, end: segment.end, timestamp: 0 },
): Generator<Block, number> {
  let { timestamp } = part;
  // A cluster of unknown size ends where the next one begins, so its elements are read as if they were beside it.
  for (let { at } = part; at < part.end;) {
    const element = elementAt(source, at, segment.end);
    at = element.id === ids.cluster ? element.body : element.end;
    if (element.id === ids.timestamp) timestamp = unsignedIn(source, element);
    if (element.id === ids.simpleBlock) {
      const block = readBlock(source, element, timestamp);
      yield { ...block, isKey: (block.flags & 0x80) !== 0, duration: null, discardNs: 0, others: null };
    }
    if (element.id === ids.blockGroup) {
      const block = readGroup(source, element, timestamp);
      if (block !== undefined) yield block;
    }
    if (element.id === ids.ebml) checkSingle(segment);
    if (element.end === Infinity && element.id !== ids.cluster) return timestamp;
  }
  if (segment.end + 4 <= source.size && source.u32(segment.end) === ids.ebml) checkSingle(segment);
  return timestamp;
}

/** To be called where another file begins. A segment of a stream may have a header of its own. */
function checkSingle({ id }: Element): void {
  if (id === ids.segment) throw damagedMatroskaError("several Segments follow each other");
}

function readGroup(source: NumberSource, group: Element, timestamp: number): Block | undefined {
  const children = [...elementsIn(source, group)];
  const child = (id: number) => children.find((one) => one.id === id);
  const [block, duration, discard] = [child(ids.block), child(ids.blockDuration), child(ids.discardPadding)];
  if (block === undefined) return undefined;
  return {
    ...readBlock(source, block, timestamp),
    isKey: child(ids.referenceBlock) === undefined,
    duration: duration === undefined ? null : unsignedIn(source, duration),
    discardNs: discard === undefined ? 0 : signedIn(source, discard),
    others: children.filter((one) => one !== block),
  };
}

/** Reads the header of a block (§10.1). */
function readBlock(source: NumberSource, { body, end }: Element, timestamp: number) {
  const track = readVarInt(source, body, end, 8);
  if (track === undefined || track.end + 3 > end) throw damagedMatroskaError(`the block at ${body} is too short`);
  const { value, end: at } = track;
  const relative = (source.u16(at) << 16) >> 16;
  return { track: value, ticks: timestamp + relative, flags: source.u8(at + 2), body: at + 3, end };
}

/** A Matroska file that is open, and which of its tracks are read. */
export interface ChosenTracks {
  fd: number;
  source: NumberSource;
  header: MatroskaHeader;
  tracks: readonly MatroskaTrack[];
  /** Whether it has come to its end; absent: it has. */
  isComplete?: () => boolean;
}

/** What is read next of a file is not there: it must have so many bytes. */
export interface MissingBytes {
  file: ChosenTracks;
  bytes: number;
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
  // Most blocks are close to each other.
  for (const block of readBlocks(source.openTable(), header)) if (numbers.has(block.track)) yield block;
}

/** Yields the blocks of the chosen tracks of a file that grows, in order, and what is missing before the next one. @throws as `readBlocks` */
export function* growingBlocks(file: ChosenTracks): Generator<Block | MissingBytes, undefined> {
  const { fd, tracks, isComplete = () => true } = file;
  const numbers = new Set(tracks.map(({ number }) => number));
  const { segment } = file.header;
  let [at, timestamp] = [segment.body, 0];
  for (;;) {
    const isLast = isComplete();
    const source = numbersInFile(fd).openTable();
    const limit = isLast ? Math.min(segment.end, source.size) : segment.end;
    const { end, bytes } = isLast ? { end: limit, bytes: 0 } : wholeElements(source, at, limit);
    const blocks = readBlocks(source, { segment: { ...segment, end: limit } }, { at, end, timestamp });
    for (let next = blocks.next(); ; next = blocks.next()) {
      if (next.done === true) timestamp = next.value;
      if (next.done === true) break;
      if (numbers.has(next.value.track)) yield next.value;
    }
    if (isLast) return;
    at = end;
    yield { file, bytes };
  }
}

/**
 * Returns where elements end that are there from `start` on, up to a bounded number of bytes, and how many bytes of the file the next one needs. A
 * cluster is as its elements are.
 */
function wholeElements(source: NumberSource, start: number, limit: number): { end: number; bytes: number } {
  const available = Math.min(limit, source.size);
  let at = start;
  for (;;) {
    const element = readElement(source, at, available);
    if (element === undefined || (element.id !== ids.cluster && element.end > available)) {
      const next = element?.end ?? Math.min(available + headBytes, limit);
      // What follows the Segment shows that there is no more.
      return { end: at, bytes: source.size < limit ? next : Infinity };
    }
    at = element.id === ids.cluster ? element.body : element.end;
    if (at - start >= maxLookBytes) return { end: at, bytes: at };
  }
}

/** How far the ends of elements are looked for in one go. */
const maxLookBytes = 8 << 20;
/** Of an element: the longest id and size. */
const headBytes = 12;

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
