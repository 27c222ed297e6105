import { ServiceError } from "../model/errors.ts";
import { invalidResponseError } from "./upstream-error.ts";

/** Bytes of a resource, to its end if `length` is missing. */
export interface ByteRange {
  offset: number;
  length?: number;
}

/** Bytes `start` to `end`, both inclusive (RFC 9110 §14.1.1, int-range). */
export interface IntRange {
  start: number;
  end: number;
}

/** A range of a resource of `total` bytes; `null`: unknown. */
interface ContentRange extends IntRange {
  total: number | null;
}

/**
 * Returns the `Range` field for a range (RFC 9110 §14.2). `what` is the request, for the error.
 *
 * @throws ServiceError `upstream_invalid` if the range is empty or its numbers are not safe integers: it
 * comes from a manifest.
 */
export function rangeField({ offset, length }: ByteRange, what: string): string {
  const end = length === undefined ? offset : offset + length - 1;
  if (!Number.isSafeInteger(offset) || offset < 0 || !Number.isSafeInteger(end) || end < offset) {
    const rule = "a byte range must have an offset of 0 or more and a length of 1 or more";
    const got = `offset ${offset}, length ${length ?? "to the end"}`;
    throw invalidResponseError(what, `${rule}, got ${got}`);
  }
  return length === undefined ? `bytes=${offset}-` : `bytes=${offset}-${end}`;
}

/** Parses a `Content-Range` field (RFC 9110 §14.4); `undefined` unless it is one satisfied byte range. Some servers write `bytes=`, `bytes:` or no unit. */
export function parseContentRange(value: string | undefined): ContentRange | undefined {
  const [, start, end, total] =
    /^(?:bytes(?:[ \t]+|[:=][ \t]*))?(\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/i.exec(value?.trim() ?? "") ?? [];
  if (start === undefined || end === undefined) return undefined;
  const range = { start: Number(start), end: Number(end), total: null };
  if (range.start > range.end || !Number.isSafeInteger(range.end)) return undefined;
  if (total === "*") return range;
  const known = { ...range, total: Number(total) };
  return known.total > known.end && Number.isSafeInteger(known.total) ? known : undefined;
}

/** Returns the bytes of the resource that the `Content-Range` of a response with status 416 states (RFC 9110 §14.4, unsatisfied-range). */
export function parseUnsatisfiedRange(value: string | undefined): number | undefined {
  const [, total] = /^bytes[ \t]+\*\/(\d{1,15})$/i.exec(value?.trim() ?? "") ?? [];
  return total === undefined ? undefined : Number(total);
}

/**
 * Checks what a response says that it has against the request. A 206 (RFC 9110 §15.3.7) must be one range that begins at the
 * first requested byte, wherever it ends; all of the resource if no range was requested. One that does not
 * say which range it is must have as many bytes as were requested.
 * With any other status, `Content-Range` must not state a part: some servers send one with status 200.
 *
 * @throws ServiceError `upstream_invalid`, with `upstreamStatus` 206 if that has other bytes than those asked for
 */
export function checkPartial(
  { status, headers }: { status: number; headers: ReadonlyMap<string, string> },
  requested: ByteRange | undefined,
  what: string,
): void {
  const sent = parseContentRange(headers.get("content-range"));
  if (status !== 206) {
    if (sent === undefined || (sent.start === 0 && sent.end + 1 === (sent.total ?? sent.end + 1))) return;
    const part = `bytes ${sent.start}-${sent.end}`;
    throw invalidResponseError(what, `the response has status ${status}, as if it had everything, and states ${part}`);
  }
  if (requested === undefined) {
    if (sent?.start === 0 && sent.total === sent.end + 1) return;
    throw otherRangeError(what, "the response is a range (206), but none was requested");
  }
  if (sent === undefined && isAsLong(headers, requested)) return;
  if (sent === undefined) throw otherRangeError(what, "the response does not state a single range");
  if (sent.start === requested.offset) return;
  const rule = `${rangeField(requested, what)} was requested`;
  throw otherRangeError(what, `${rule}, the response is bytes ${sent.start}-${sent.end}`);
}

function otherRangeError(what: string, rule: string): ServiceError {
  return new ServiceError("upstream_invalid", `${what}: ${rule}`, { upstreamStatus: 206 });
}

function isAsLong(headers: ReadonlyMap<string, string>, { length }: ByteRange): boolean {
  const isSingle = !headers.has("content-range") && !/^multipart\//i.test(headers.get("content-type")?.trim() ?? "");
  return isSingle && length !== undefined && headers.get("content-length")?.trim() === String(length);
}
