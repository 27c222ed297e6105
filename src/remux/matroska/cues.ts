import type { Element } from "./ebml.ts";
import type { NumberSource } from "../mp4/read/number-source.ts";
import { damagedMatroskaError, elementsIn, ids, unsignedIn } from "./elements.ts";

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
  for (const point of elementsIn(table, cues)) {
    if (point.id !== ids.cuePoint) continue;
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
  for (const seek of elementsIn(source, seekHead)) {
    if (seek.id !== ids.seek) continue;
    const values = new Map([...elementsIn(source, seek)].map((child) => [child.id, unsignedIn(source, child)]));
    const position = values.get(ids.seekPosition);
    if (values.get(ids.seekId) === ids.cues && position !== undefined) return segmentBody + position;
  }
  return undefined;
}
