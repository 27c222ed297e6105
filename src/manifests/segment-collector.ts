import { invalidManifestError } from "./manifest.ts";
import type { Segment } from "./segments.ts";

/** Limit of the segments of one list. */
const maxSegments = 200_000;

/** Limit of all URLs of one list together, characters: a short reference may resolve to a long URL. */
const maxUrlsLength = 64 * 1024 * 1024;

/** Collects the segments of one list within its limits. */
export function createSegmentCollector(manifest: URL) {
  const segments: Segment[] = [];
  let remaining = maxUrlsLength;
  return {
    segments,
    /** @throws ServiceError `upstream_invalid` over 200,000 segments or 64 Mi characters of URLs. */
    add(segment: Segment): void {
      checkSegmentCount(segments.length + 1, manifest);
      remaining -= segment.url.length;
      if (remaining < 0) {
        throw invalidManifestError(
          manifest,
          `the URLs of its segments must have at most ${maxUrlsLength} characters together`,
        );
      }
      segments.push(segment);
    },
  };
}

/**
 * Checks a number of segments before they are created.
 *
 * @throws ServiceError `upstream_invalid` for more than 200,000.
 */
export function checkSegmentCount(count: number, manifest: URL): void {
  if (count <= maxSegments) return;
  throw invalidManifestError(
    manifest,
    `it lists ${count} segments, the limit is ${maxSegments} segments`,
  );
}
