import type { ByteRange } from "../../net/byte-range.ts";
import { invalidManifestError } from "../manifest.ts";
import type { Segment } from "../segments.ts";

/**
 * Creates a reader of the segments' EXT-X-BYTERANGE (RFC 8216 §4.3.2.2), `length[@offset]`, `null` if a
 * segment has none; each may continue the one before, and the first one, as in players, its init section. It returns
 * `null` for all of the resource.
 *
 * @throws ServiceError, from the reader: `upstream_invalid` for an invalid or empty range, and for one without
 * offset that does not follow a range of the same resource.
 */
export function createByteRangeReader(url: URL) {
  let last: { resourceUrl: string; end: number } | null = null;
  return (value: string | null, resourceUrl: string, first: FirstSegment | null): ByteRange | null => {
    if (value === null) return (last = null);
    const { length, offset } = parseByteRange(value, url);
    const start = offset ?? (last?.resourceUrl === resourceUrl ? last.end : first && startOfFirst(first, resourceUrl));
    if (start === null) {
      const rule = "a byte range that follows no range of the same resource must state an offset";
      throw invalidManifestError(url, rule, value);
    }
    last = { resourceUrl, end: start + length };
    return { offset: start, length };
  };
}

/** The first segment of a stream, of which nothing is missing before it. */
type FirstSegment = Pick<Segment, "init">;

function startOfFirst({ init }: FirstSegment, resourceUrl: string): number {
  const range = init?.url === resourceUrl ? init.range : null;
  return range === null ? 0 : range.offset + (range.length ?? 0);
}

/**
 * Parses `length[@offset]`; `offset` is `null` if it is missing.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function parseByteRange(value: string, url: URL): { length: number; offset: number | null } {
  const [, length, offset] = /^\s*(\d{1,15})(?:\s*@\s*(\d{1,15}))?\s*$/.exec(value) ?? [];
  if (length === undefined || Number(length) === 0) {
    throw invalidManifestError(url, "a byte range must be length[@offset]", value);
  }
  return { length: Number(length), offset: offset === undefined ? null : Number(offset) };
}
