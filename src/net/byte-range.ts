import { ServiceError } from "../errors.ts";
import type { ByteRange, HttpResponse } from "./client.ts";

/** Bytes `start` to `end`, both included, of a resource of `total` bytes; `null`: not known. */
export interface ContentRange {
  start: number;
  end: number;
  total: number | null;
}

/**
 * The `Range` field that asks for `range` (RFC 9110 §14.2).
 *
 * @throws ServiceError `upstream_invalid` for a range that is empty or not of whole numbers, as only
 *   a manifest could have stated it
 */
export function rangeField({ offset, length }: ByteRange, what: string): string {
  const end = length === undefined ? offset : offset + length - 1;
  if (!Number.isSafeInteger(offset) || offset < 0 || !Number.isSafeInteger(end) || end < offset) {
    const rule = `a byte range must begin at 0 or later and hold a byte or more`;
    throw fault(what, `${rule}, not ${length ?? "all"} from ${offset}`);
  }
  return length === undefined ? `bytes=${offset}-` : `bytes=${offset}-${end}`;
}

/** What a `Content-Range` field says of a single range (RFC 9110 §14.4); `undefined` where it is none. */
export function parseContentRange(value: string | undefined): ContentRange | undefined {
  const [, start, end, total] =
    /^bytes[ \t]+(\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/i.exec(value?.trim() ?? "") ?? [];
  if (start === undefined || end === undefined) return undefined;
  const range = { start: Number(start), end: Number(end), total: null };
  if (range.start > range.end || !Number.isSafeInteger(range.end)) return undefined;
  if (total === "*") return range;
  const known = { ...range, total: Number(total) };
  return known.total > known.end && Number.isSafeInteger(known.total) ? known : undefined;
}

/**
 * Holds a 206 to what was asked (RFC 9110 §15.3.7): one range, from the byte that was asked for, to no
 * byte behind the last one. It may end earlier.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function checkPartial(
  { status, headers }: Pick<HttpResponse, "status" | "headers">,
  asked: ByteRange | undefined,
  what: string,
): void {
  if (status !== 206) return;
  if (asked === undefined) throw fault(what, "the answer is a range (206), and none was asked for");
  const sent = parseContentRange(headers.get("content-range"));
  if (sent === undefined) throw fault(what, "the answer does not say which single range it is");
  const last = asked.length === undefined ? Infinity : asked.offset + asked.length - 1;
  if (sent.start === asked.offset && sent.end <= last) return;
  const range = `bytes ${sent.start}-${sent.end}`;
  throw fault(what, `${rangeField(asked, what)} was asked for, the answer is ${range}`);
}

function fault(what: string, rule: string): ServiceError {
  return new ServiceError("upstream_invalid", `${what}: ${rule}`);
}
