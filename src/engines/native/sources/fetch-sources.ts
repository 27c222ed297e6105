import { fetchSegments, type FetchSegmentsOptions } from "./fetch-segments.ts";
import type { PartStore } from "../parts/part-store.ts";
import type { FetchedPart, Part } from "../parts/stored-part.ts";
import { FetchStats, type FetchStatsBySource } from "./fetch-stats.ts";
import type { FileSource, Source } from "./plan.ts";
import type { ProgressTracker } from "./progress-tracker.ts";
import { openFileStream, openSegmentStream, type SourceStream } from "./source-stream.ts";

export interface SourceFetcherDeps extends Omit<
  FetchSegmentsOptions,
  "fetchPart" | "onSegment" | "stats"
> {
  parts: PartStore;
  /** Gets the stats of each source whose segments are fetched. */
  fetched: FetchStatsBySource;
  progress: ProgressTracker;
}

/** Fetches sources into the part store. Throws ServiceErrors of the store and the client. */
export interface SourceFetcher {
  /** Fetches a progressive file. */
  fetchFile(source: FileSource): Promise<FetchedPart>;
  /** Starts to fetch; resolves once the container is known. */
  openStream(source: Source): Promise<SourceStream>;
}

export function createSourceFetcher(deps: SourceFetcherDeps): SourceFetcher {
  const { parts, progress, signal } = deps;

  async function fetchPart({ name, headers }: Source, part: Part): Promise<FetchedPart> {
    const fetched = await parts.fetch(part, {
      signal,
      headers,
      onTotal: (bytes) => progress.setTotal(name, bytes),
      onBytes: () => progress.update(),
    });
    progress.update();
    return fetched;
  }

  function fetchFile(source: FileSource): Promise<FetchedPart> {
    const { name, url, format } = source;
    return fetchPart(source, { name, url, range: null, chunkBytes: format.http_chunk_size });
  }

  return {
    fetchFile,
    async openStream(source) {
      const { name } = source;
      if (source.kind === "file") return openFileStream(name, (await fetchFile(source)).path);
      const stats = new FetchStats();
      deps.fetched.set(name, stats);
      const segments = fetchSegments(source, {
        ...deps,
        stats,
        fetchPart: (part) => fetchPart(source, part),
        onSegment: (durationS, bytes) => progress.addSegment(name, durationS, bytes),
      });
      const isLive = source.liveJournalPath !== null;
      return openSegmentStream(name, segments, isLive, () => (stats.missing += 1));
    },
  };
}
