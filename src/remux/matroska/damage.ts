import { crc32 } from "node:zlib";
import { unlessUnreadable } from "../../model/errors.ts";
import { type Element, ids, readBytes, readElement, readVarInt, unsignedIn } from "./elements.ts";
import { type NumberSource, numbersInFile } from "../mp4/read/number-source.ts";
import { createFileWindow, openFile, readChunks, type ReadFile } from "../open-file.ts";
import type { ByteSpan } from "../samples.ts";
import { chosenBlocks, readBlocks, selectAll } from "./blocks.ts";
import { hasDamagedLace } from "./frames.ts";
import { readHeader } from "./tracks.ts";

/** Bytes of a Matroska or WebM file that are not an element, or not one that is known. */
interface Damage extends ByteSpan {
  /** No media are missing: an element that no program of today knows, or what comes after the end that the last Segment states. */
  isHarmless: boolean;
}

const maxPlaces = 1_000;

/**
 * Counts the places at which media of a Matroska or WebM file are missing, damaged or out of order, by its elements and the times and
 * checksums of its Clusters; 0 for another file.
 */
export function countDamage(file: ReadFile): number {
  const source = numbersInFile(file.fd);
  const changed: Element[] = [];
  let summedTo = 0;
  let last: TimedCluster | undefined;
  const damage = findDamage(file, (element) => {
    const { id, body, end } = element;
    if (id === ids.segment) last = undefined;
    if (id !== ids.cluster || changed.length === maxPlaces) return;
    const ticks = timestampOf(source, element);
    const next = ticks === undefined ? undefined : { cluster: element, ticks };
    const isInOrder = next !== undefined && (last === undefined || areInOrder(source, last, next));
    last = next ?? last;
    // The sizes of some reach into others.
    const isSummed = end !== Infinity && body >= summedTo;
    if (isSummed) summedTo = end;
    if (!isInOrder || (isSummed && !isAsSummed(file, element))) changed.push(element);
  });
  const isWhole = ({ body, end }: Element) => !damage.some(({ start }) => start >= body && start < end);
  const harmful = damage.filter(({ isHarmless }) => !isHarmless);
  const places = harmful.filter(({ start }, i) => harmful[i - 1]?.end !== start);
  return places.length + changed.filter(isWhole).length;
}

/**
 * Returns how many blocks of a Matroska or WebM file have a lace whose sizes do not fit (RFC 9559 §10.3), up to where the file
 * itself is damaged.
 */
export function countDamagedLaces(file: ReadFile): number {
  let count = 0;
  unlessUnreadable(() => {
    const source = selectAll(file.fd);
    for (const block of source === undefined ? [] : chosenBlocks(source)) {
      if (hasDamagedLace(block.flags, () => readBytes(file.fd, block))) count += 1;
    }
  });
  return count;
}

/**
 * Returns how many Segments with media follow each other in a Matroska or WebM file; 0 of another file.
 * @throws the file system's own errors.
 */
export function countSegments(path: string): number {
  using file = openFile(path);
  let count = 0;
  let isEmpty = false;
  findDamage(file, ({ id }) => {
    if (id === ids.cluster && isEmpty) count += 1;
    isEmpty = id === ids.segment;
  });
  return count;
}

/**
 * Returns where a Matroska or WebM file is damaged, in order; none of another file. Its elements are followed (RFC 8794 §5), and from
 * damage on the next Cluster, or other element of a Segment, is looked for. After 1,000 places the rest counts as one.
 * @param onElement Gets each Segment and Cluster.
 * @throws the file system's own errors.
 */
export function findDamage(file: ReadFile, onElement?: (element: Element) => void): Damage[] {
  const source = numbersInFile(file.fd);
  if (source.size < 4 || source.u32(0) !== ids.ebml) return [];
  const window = createFileWindow(file);
  const found: Damage[] = [];
  let segmentEnd = source.size;
  /** 0: in none. */
  let clusterEnd = 0;
  /** Infinity: not stated. */
  let statedEnd = Infinity;
  for (let at = 0; at < source.size;) {
    if (at >= segmentEnd) segmentEnd = source.size;
    const limit = at < clusterEnd ? clusterEnd : segmentEnd;
    const element = readElement(source, at, segmentEnd);
    if (element !== undefined && isRight(source, element, { limit, segmentEnd, isInCluster: at < clusterEnd })) {
      const isUnknown = at >= clusterEnd && !isTop(element) && element.id !== ids.void;
      if (isUnknown) found.push({ start: at, end: element.end, isHarmless: true });
      if (isTop(element)) clusterEnd = 0;
      if (element.id === ids.segment) {
        segmentEnd = Math.min(element.end, source.size);
        statedEnd = element.end;
      }
      if (element.id === ids.cluster) clusterEnd = Math.min(element.end, segmentEnd);
      const isParent = element.id === ids.segment || element.id === ids.cluster;
      if (isParent) onElement?.(element);
      at = isParent ? element.body : element.end;
      continue;
    }
    const end: number = found.length >= maxPlaces - 1 ? source.size : window.find(signatures, at + 1, limit);
    found.push({ start: at, end, isHarmless: at >= statedEnd && end === source.size });
    at = end;
  }
  return found;
}

/** The elements of a file and a Segment after which there is another one of them. */
const tops: ReadonlySet<number> = new Set([
  ids.ebml,
  ids.segment,
  ids.seekHead,
  ids.info,
  ids.tracks,
  ids.cluster,
  ids.cues,
  ids.chapters,
  ids.tags,
  ids.attachments,
]);

/** Within a Cluster it ends that: some sizes are too large, and others are not stated. */
const isTop = ({ id }: Element): boolean => tops.has(id);

interface Place {
  limit: number;
  segmentEnd: number;
  isInCluster: boolean;
}

/** Elements that no program of today knows are right if they fit; those of a Segment have IDs of 4 bytes. */
function isRight(source: NumberSource, element: Element, { limit, segmentEnd, isInCluster }: Place): boolean {
  const { id, body, end } = element;
  if (id === ids.segment || id === ids.cluster) return end <= segmentEnd || end === Infinity || id === ids.segment;
  if (end > (isTop(element) ? segmentEnd : limit)) return false;
  if (!isInCluster) return id >= 0x1000_0000 || id === ids.void || id === ids.crc32;
  if (id === ids.simpleBlock) return isBlock(source, element);
  if (id !== ids.blockGroup) return true;
  for (let at = body; at < end;) {
    const child = readElement(source, at, end);
    if (child === undefined || child.end > end || (child.id === ids.block && !isBlock(source, child))) return false;
    at = child.end;
  }
  return true;
}

/** Whether it is long enough for the number of its track, its time and its flags (RFC 9559 §10.1). */
function isBlock(source: NumberSource, { body, end }: Element): boolean {
  const track = readVarInt(source, body, end, 8);
  return track !== undefined && track.end + 3 <= end;
}

/** What the next sound part of a file begins with. */
const signatures = [ids.cluster, ids.cues, ids.tags, ids.ebml].map((id) => Buffer.from(id.toString(16), "hex"));

/** Returns the time of a Cluster (RFC 9559 §5.1.3.1), ticks of the file; undefined if it has a block before that, or none. */
function timestampOf(source: NumberSource, { body, end }: Element): number | undefined {
  for (let at = body; at < Math.min(end, source.size);) {
    const child = readElement(source, at, Math.min(end, source.size));
    if (child?.id === ids.timestamp) return child.end <= source.size ? unsignedIn(source, child) : undefined;
    if (child === undefined || child.id === ids.simpleBlock || child.id === ids.blockGroup) return undefined;
    at = child.end;
  }
  return undefined;
}

/** How much earlier than the one before it a Cluster may begin if no blocks of both show their order. */
const maxReorderedNs = 1e9;

interface TimedCluster {
  cluster: Element;
  /** When it begins, ticks of the file. */
  ticks: number;
}

/**
 * Whether Clusters that follow each other are in order. The next one may begin earlier with pictures, which are stored as they are
 * decoded; but those that depend on no others, and audio, come in the order of their times.
 */
function areInOrder(source: NumberSource, last: TimedCluster, next: TimedCluster): boolean {
  if (next.ticks >= last.ticks) return true;
  const before = keyTimesOf(source, last.cluster);
  const known = [...keyTimesOf(source, next.cluster)].filter(([track]) => before.has(track));
  if (known.length > 0) return known.every(([track, { earliest }]) => earliest >= before.get(track)!.last);
  const { timestampScale = 1e6 } = unlessUnreadable(() => readHeader(source)) ?? {};
  return (last.ticks - next.ticks) * timestampScale <= maxReorderedNs;
}

/** Returns by track when the blocks of a Cluster come that depend on no others, ticks of the file; up to a damaged one. */
function keyTimesOf(source: NumberSource, { id, body, end: statedEnd }: Element) {
  const limit = Math.min(statedEnd, source.size);
  let end = body;
  for (let child = readElement(source, end, limit); child !== undefined && !isTop(child);) {
    end = Math.min(child.end, limit);
    child = readElement(source, end, limit);
  }
  const times = new Map<number, { earliest: number; last: number }>();
  unlessUnreadable(() => {
    for (const { track, ticks, isKey } of readBlocks(source, { segment: { id, body, end } })) {
      const earliest = Math.min(ticks, times.get(track)?.earliest ?? ticks);
      if (isKey) times.set(track, { earliest, last: ticks });
    }
  });
  return times;
}

/** Whether a Cluster has the bytes that it was made with (RFC 8794 §11.3.1), if it says so. */
function isAsSummed(file: ReadFile, { body, end }: Element): boolean {
  const source = numbersInFile(file.fd);
  const first = readElement(source, body, end);
  if (first?.id !== ids.crc32 || first.end - first.body !== 4) return true;
  const sum = [3, 2, 1, 0].reduce((value, at) => value * 256 + source.u8(first.body + at), 0);
  return readChunks(file, end, first.end).reduce((crc, bytes) => crc32(bytes, crc), 0) === sum;
}
