import type { ByteRange } from "../net/byte-range.ts";
import { invalidManifestError } from "./manifest.ts";

/** The byte ranges of one playlist; each may continue the one before. */
export interface ByteRanges {
  /**
   * Parses an EXT-X-BYTERANGE (RFC 8216 §4.3.2.2), `length[@offset]`, of the resource at `resourceUrl`.
   * Returns `null`, the whole resource, if `value` is `null`.
   *
   * @throws ServiceError `upstream_invalid` for an invalid or empty range, and for one without offset
   * that does not follow a range of the same resource.
   */
  next(value: string | null, resourceUrl: string): ByteRange | null;
}

export function createByteRanges(url: URL): ByteRanges {
  let last: { resourceUrl: string; end: number } | null = null;
  return {
    next(value, resourceUrl) {
      if (value === null) {
        last = null;
        return null;
      }
      const { length, offset } = parseByteRange(value, url);
      const start = offset ?? (last?.resourceUrl === resourceUrl ? last.end : null);
      if (start === null) {
        throw invalidManifestError(
          url,
          `the byte range ${value} must state an offset: it follows no range of the same resource`,
        );
      }
      last = { resourceUrl, end: start + length };
      return { offset: start, length };
    },
  };
}

/**
 * Parses `length[@offset]`; `offset` is `null` if it is not stated.
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
