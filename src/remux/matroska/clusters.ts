import { childrenOf, damagedMatroskaError, type Element, elementAt, elementsIn, ids, unsignedIn } from "./elements.ts";
import type { NumberSource } from "../mp4/read/number-source.ts";
import type { ByteSpan, MediaRange } from "../samples.ts";
import { readBlocks } from "./blocks.ts";
import type { MatroskaHeader } from "./tracks.ts";

/** Where the Cues (RFC 9559 §5.1.5) say that a block of a track is. */
export interface CuePoint {
  /** Of the block, ticks. */
  ticks: number;
  track: number;
  /** Of its Cluster in the file. */
  at: number;
}

/** 100 hours with a key frame a second. */
const maxCuePoints = 1 << 19;

/**
 * Returns what Cues list, in their order; `segmentBody` is what positions count from (§16).
 * @throws ServiceError `upstream_invalid` if they are damaged, or list over 500,000 blocks.
 */
export function readCues(source: NumberSource, cues: Element, segmentBody: number): CuePoint[] {
  const table = source.openTable();
  const found: CuePoint[] = [];
  for (const point of childrenOf(table, cues, ids.cuePoint)) {
    const children = [...elementsIn(table, point)];
    const time = children.find(({ id }) => id === ids.cueTime);
    for (const positions of children.filter(({ id }) => id === ids.cueTrackPositions)) {
      const values = new Map([...elementsIn(table, positions)].map((child) => [child.id, unsignedIn(table, child)]));
      const [track, position] = [values.get(ids.cueTrack), values.get(ids.cueClusterPosition)];
      if (time === undefined || track === undefined || position === undefined) continue;
      found.push({ ticks: unsignedIn(table, time), track, at: segmentBody + position });
      if (found.length > maxCuePoints) throw damagedMatroskaError(`its Cues list over ${maxCuePoints} blocks`);
    }
  }
  return found;
}

/** Returns where a SeekHead (§5.1.1) says that the Cues are; undefined if it does not. @throws ServiceError as `readCues` */
export function findCues(source: NumberSource, seekHead: Element, segmentBody: number): number | undefined {
  for (const seek of childrenOf(source, seekHead, ids.seek)) {
    const values = new Map([...elementsIn(source, seek)].map((child) => [child.id, unsignedIn(source, child)]));
    const position = values.get(ids.seekPosition);
    if (values.get(ids.seekId) === ids.cues && position !== undefined) return segmentBody + position;
  }
  return undefined;
}

/** Clusters that follow each other in a file. */
export interface ClusterRun {
  /** Where they are; what is between them is something else. */
  clusters: ByteSpan[];
  /** By track number: the times from which on its blocks can be decoded, and of the last one, seconds of the file. */
  tracks: Map<number, MediaRange>;
}

/**
 * Reads the heads of the Clusters (RFC 9559 §5.1.3) and blocks from `start` to `end`, where elements must begin and end.
 * @throws ServiceError `upstream_invalid` if they do not, or a Cluster has no size.
 */
export function readClusterRun(source: NumberSource, header: MatroskaHeader, { start, end }: ByteSpan): ClusterRun {
  const clusters: ByteSpan[] = [];
  for (let at = start; at < end;) {
    const element = elementAt(source, at, end);
    if (element.end === Infinity) throw damagedMatroskaError(`the element at ${at} has no size`);
    if (at === start && element.id !== ids.cluster) throw damagedMatroskaError(`there is no Cluster at ${at}`);
    if (element.id === ids.cluster && clusters.at(-1)?.end === at) clusters.at(-1)!.end = element.end;
    else if (element.id === ids.cluster) clusters.push({ start: at, end: element.end });
    at = element.end;
  }
  const tracks = new Map<number, MediaRange>();
  const segments = clusters.map((span) => ({ id: ids.segment, body: span.start, end: span.end }));
  const blocks = segments.values().flatMap((segment) => readBlocks(source, { ...header, segment }));
  for (const { track, ticks, isKey } of blocks) {
    const timeS = (ticks * header.timestampScale) / 1e9;
    const known = tracks.get(track);
    if (known !== undefined) {
      known.startS = Math.min(known.startS, timeS);
      known.endS = Math.max(known.endS, timeS);
    } else if (isKey) tracks.set(track, { startS: timeS, endS: timeS });
  }
  return { clusters, tracks };
}
