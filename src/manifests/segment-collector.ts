import { invalidManifestError } from "./manifest.ts";
import type { Segment } from "./segments.ts";

/** A list with more segments is refused. */
export const maxSegments = 200_000;

/** All addresses of one list together, characters: a short line may stand for a long address. */
const maxAddressLength = 64 * 1024 * 1024;

/** The segments of one list, in order, within their bounds. */
export interface SegmentCollector {
  readonly segments: Segment[];
  /**
   * @throws ServiceError `upstream_invalid` at the 200,001st, or over 64 Mi characters of
   * addresses.
   */
  add(segment: Segment): void;
}

export function createSegmentCollector(manifest: URL): SegmentCollector {
  const segments: Segment[] = [];
  let room = maxAddressLength;
  return {
    segments,
    add(segment) {
      checkSegmentCount(segments.length + 1, manifest);
      room -= segment.url.length;
      if (room < 0) {
        throw invalidManifestError(
          manifest,
          `the addresses of its segments may have ${maxAddressLength} characters together`,
        );
      }
      segments.push(segment);
    },
  };
}

/**
 * @throws ServiceError `upstream_invalid` for more than 200,000: nothing needs to be made of them
 * first.
 */
export function checkSegmentCount(count: number, manifest: URL): void {
  if (count <= maxSegments) return;
  throw invalidManifestError(manifest, `it may list ${maxSegments} segments, but lists ${count}`);
}
