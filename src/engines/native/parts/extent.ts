import { ServiceError } from "../../../errors.ts";
import { parseContentRange } from "../../../net/byte-range.ts";
import type { HttpResponse } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import { sizeOf } from "./stored-part.ts";
import type { Part } from "./part.ts";
import { representationOf } from "./representation.ts";

/** Which of an answer's bytes are a part's. */
export interface Extent {
  /** Of the whole part; `null`: not told. */
  size: number | null;
  /** Bytes before the part's first. */
  skip: number;
  /** The answer has no more bytes of the part than these. */
  length: number;
}

/**
 * A 206 holds what is wanted; any other answer holds the resource from its first byte.
 *
 * @throws ServiceError `upstream_invalid` where the resource is shorter than the part's range, or where
 *   a 206 without an end leaves open whether it is all
 */
export function extentOf(answer: HttpResponse, part: Part): Extent {
  const { status, headers } = answer;
  const { total } = representationOf(answer);
  const size = sizeOf(part.range, total);
  if (size === undefined) throw partError(part, `the resource has only ${total} bytes`);
  if (status !== 206) {
    return { size, skip: part.range?.offset ?? 0, length: size ?? Number.POSITIVE_INFINITY };
  }
  const sent = parseContentRange(headers.get("content-range"));
  if (size === null || sent === undefined) {
    throw partError(part, "a range without an end was answered without the length of the whole");
  }
  return { size, skip: 0, length: sent.end - sent.start + 1 };
}

/** The bytes among those of a stream that `extent` says are wanted. */
export function createCutter(extent: Extent, part: Part, isWhole: boolean) {
  let { skip, length } = extent;
  return {
    get left() {
      return length;
    },
    cut(chunk: Uint8Array): Uint8Array {
      const skipped = Math.min(skip, chunk.length);
      skip -= skipped;
      const bytes = chunk.subarray(skipped, skipped + length);
      if (!isWhole && bytes.length < chunk.length) {
        throw partError(part, "the answer is longer than the range that it states");
      }
      length -= bytes.length;
      return bytes;
    },
  };
}

/** What no other try will mend. */
export function partError(part: Part, rule: string): ServiceError {
  return new ServiceError("upstream_invalid", `${nameOfPart(part)}: ${rule}`);
}

/** An answer that ended without an error and yet too early. */
export function partTruncatedError(part: Part, missing: number): ServiceError {
  const rule = `the response is ${missing} bytes too short`;
  return new ServiceError("upstream_unreachable", `${nameOfPart(part)}: ${rule}`);
}

function nameOfPart({ url, range }: Part): string {
  const bytes = range === null ? "" : ` (${range.length ?? "all"} bytes from ${range.offset})`;
  return `GET ${urlForMessage(url)}${bytes}`;
}
