import { ServiceError } from "../../../model/errors.ts";
import { resolveSegmentUrl } from "../../../manifests/segment-url.ts";
import type { SegmentList } from "../../../manifests/segments.ts";
import type { Fragment } from "../../../model/page-info.ts";

/** As many as a manifest of the largest size lists. */
const maxFragments = 200_000;

/**
 * Returns the segment list of a format that is stated by its fragments. The initialisation segment needs no
 * mark: the bytes are read in this order.
 *
 * @param base What relative URLs relate to, and messages name
 * @throws ServiceError of `resolveSegmentUrl`; `format_unavailable` for no fragment or more than 200,000
 */
export function segmentsOf(fragments: readonly Fragment[], base: URL): SegmentList {
  if (fragments.length === 0 || fragments.length > maxFragments) {
    const rule = `must have 1 to ${maxFragments} fragments, it has ${fragments.length}`;
    throw new ServiceError("format_unavailable", `the format ${rule}`);
  }
  const segments = fragments.map(({ url, duration }, sequence) => ({
    url: resolveSegmentUrl(url, base, base).href,
    range: null,
    init: null,
    key: null,
    durationS: duration ?? 0,
    sequence,
    timeline: 0,
    offsetS: 0,
  }));
  return { segments, hasEnded: true, refreshS: 0 };
}
