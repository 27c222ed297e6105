import { fetchSegments, type FetchSegmentsOptions } from "./fetch-segments.ts";
import type { FetchedPart, Part, PartStore } from "./part-store.ts";
import type { FileSource, Source, SourceName } from "./plan.ts";
import type { ProgressTracker } from "./progress-tracker.ts";
import { openFileStream, openSegmentStream, type SourceStream } from "./source-stream.ts";

export interface SourceFetcherDeps extends Omit<FetchSegmentsOptions, "fetchPart" | "onSegment"> {
  parts: PartStore;
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

  async function fetchPart(source: SourceName, part: Part): Promise<FetchedPart> {
    const fetched = await parts.fetch(part, {
      signal,
      onTotal: (bytes) => progress.setTotal(source, bytes),
      onBytes: () => progress.update(),
    });
    progress.update();
    return fetched;
  }

  function fetchFile({ name, url }: FileSource): Promise<FetchedPart> {
    return fetchPart(name, { name, url, range: null });
  }

  return {
    fetchFile,
    async openStream(source) {
      const { name } = source;
      if (source.kind === "file") return openFileStream(name, (await fetchFile(source)).path);
      const segments = fetchSegments(source, {
        ...deps,
        fetchPart: (part) => fetchPart(name, part),
        onSegment: (durationS, bytes) => progress.addSegment(name, durationS, bytes),
      });
      return openSegmentStream(name, segments, source.liveJournalPath !== null);
    },
  };
}
