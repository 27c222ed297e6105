import { invalidManifestError } from "./manifest.ts";
import type { SegmentRange } from "./segments.ts";

/** Reads the byte ranges of one playlist, each of which may go on where the one before ended. */
export interface ByteRanges {
  /**
   * EXT-X-BYTERANGE (RFC 8216 §4.3.2.2), `length[@offset]`, of the resource at `address`. `null`,
   * all of it, for `value` null.
   *
   * @throws ServiceError `upstream_invalid` for what is no range, is empty, or has no offset and
   * does not follow a range of the same resource.
   */
  next(value: string | null, address: string): SegmentRange | null;
}

export function createByteRanges(url: URL): ByteRanges {
  let last: { address: string; end: number } | null = null;
  return {
    next(value, address) {
      if (value === null) {
        last = null;
        return null;
      }
      const { length, offset } = readByteRange(value, url);
      const start = offset ?? (last?.address === address ? last.end : null);
      if (start === null) {
        throw invalidManifestError(
          url,
          `the byte range ${value} must state an offset, since no range of the same resource is before it`,
        );
      }
      last = { address, end: start + length };
      return { offset: start, length };
    },
  };
}

/**
 * `length[@offset]`; `offset` is `null` where it is not stated.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function readByteRange(value: string, url: URL): { length: number; offset: number | null } {
  const [, length, offset] = /^\s*(\d{1,15})(?:\s*@\s*(\d{1,15}))?\s*$/.exec(value) ?? [];
  if (length === undefined || Number(length) === 0) {
    const got = JSON.stringify(value.slice(0, 60));
    throw invalidManifestError(
      url,
      `a byte range must be a length, perhaps with @offset, got ${got}`,
    );
  }
  return { length: Number(length), offset: offset === undefined ? null : Number(offset) };
}
