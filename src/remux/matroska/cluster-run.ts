import type { NumberSource } from "../mp4/read/number-source.ts";
import type { ByteSpan, MediaRange } from "../samples.ts";
import { readBlocks } from "./blocks.ts";
import { damagedMatroskaError, elementAt, ids } from "./elements.ts";
import type { MatroskaHeader } from "./tracks.ts";

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
  for (const { track, ticks, isKey } of segments
    .values()
    .flatMap((segment) => readBlocks(source, { ...header, segment }))) {
    const timeS = (ticks * header.timestampScale) / 1e9;
    const known = tracks.get(track);
    if (known !== undefined) {
      known.startS = Math.min(known.startS, timeS);
      known.endS = Math.max(known.endS, timeS);
    } else if (isKey) tracks.set(track, { startS: timeS, endS: timeS });
  }
  return { clusters, tracks };
}
