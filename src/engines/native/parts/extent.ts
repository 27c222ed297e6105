import { ServiceError } from "../../../model/errors.ts";
import { type ByteRange, parseContentRange } from "../../../net/byte-range.ts";
import type { HttpResponse } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import { type Representation, representationOf, unchangedTotal } from "./representation.ts";
import type { Part } from "./stored-part.ts";

/** Which bytes of a response belong to a part. */
export interface Extent {
  /** Of the complete part; `null`: unknown. */
  size: number | null;
  /** Bytes before the part's first byte. */
  skip: number;
  /** At most this many bytes belong to the part. */
  length: number;
  /** It says that it has more than that. */
  isLonger: boolean;
}

/**
 * Returns the extent of a part in a response: a 206 has the requested bytes, any other response the resource
 * from its first byte.
 *
 * @param before What the server said of the resource when it sent the bytes that are stored.
 * @throws ServiceError `upstream_invalid` if the resource is shorter than the part's range; if a 206 is not the requested one, or does
 * not state the resource's length although the range has no end; if another response came although only a 206 was wanted, or its
 * length cannot be that of the whole resource.
 */
export function extentOf(response: HttpResponse, part: Part, before: Representation | null): Extent {
  const { status, headers } = response;
  if (status !== 206 && (part.isPartialOnly === true || part.wholeName !== undefined)) {
    throw partError(part, "the server sends no parts of the resource", status);
  }
  const now = representationOf(response);
  const known = status === 206 || before === null ? null : unchangedTotal(before, now);
  const total = now.total ?? known;
  if (known !== null && known !== total) {
    throw partError(part, `the response has ${total} bytes; with the same validator, the resource had ${known}`);
  }
  const size = sizeOf(part.range, total);
  if (size === undefined || isTooShort(response, part)) throw tooShortError(part, total);
  if (status !== 206) {
    return { size, skip: part.range?.offset ?? 0, length: size ?? Infinity, isLonger: part.range !== null };
  }
  const sent = parseContentRange(headers.get("content-range"));
  if (size === null) {
    throw partError(part, "the response to a range without an end does not state the length of the resource");
  }
  if (sent === undefined) return { size, skip: 0, length: size, isLonger: false };
  const end = Math.min(sent.end + 1, (part.range?.offset ?? 0) + size);
  return { size, skip: 0, length: end - sent.start, isLonger: end <= sent.end };
}

/** Whether a response that is not partial has less than the part, as an error message with status 200 and a response without content (204) have. */
export function isTooShort(response: HttpResponse, { range }: Part): boolean {
  const { status } = response;
  if (status === 204 || status === 206) return status === 204;
  const size = sizeOf(range, representationOf(response).total);
  return size === undefined || (size !== null && isCutOff({ range }, size));
}

/** Manifests are off by one, or count what only the packager's file had. */
const maxExcessBytes = 16;

/** Whether a part that has all that its resource has for it lacks over 16 bytes of its range. */
export function isCutOff({ range }: Pick<Part, "range">, size: number): boolean {
  return (range?.length ?? 0) - size > maxExcessBytes;
}

/**
 * Returns the bytes that `range` (`null`: all) has in a resource of `total` bytes; `null` if unknown,
 * `undefined` if it begins after the end of the resource.
 */
export function sizeOf(range: ByteRange | null, total: number | null): number | null | undefined {
  const { offset, length } = range ?? { offset: 0 };
  if (total === null) return length ?? null;
  const left = total - offset;
  if (left < (length === undefined ? 0 : Math.min(1, length))) return undefined;
  return length === undefined ? left : Math.min(length, left);
}

/** @param total Bytes of the resource; `null`: unknown. */
export function tooShortError(part: Part, total: number | null): ServiceError {
  return partError(part, `the resource has only ${total} bytes`);
}

/** An error that a retry cannot fix. */
export function partError(part: Part, rule: string, upstreamStatus?: number): ServiceError {
  return new ServiceError("upstream_invalid", `${nameOfPart(part)}: ${rule}`, { upstreamStatus });
}

/** The error of a response that ended too early without a connection error. */
export function partTruncatedError(part: Part, missing: number): ServiceError {
  const rule = `the response is ${missing} bytes too short`;
  return new ServiceError("upstream_unreachable", `${nameOfPart(part)}: ${rule}`);
}

function nameOfPart({ url, range }: Part): string {
  const bytes = range === null ? "" : ` (${range.length ?? "all"} bytes from ${range.offset})`;
  return `GET ${urlForMessage(url)}${bytes}`;
}
