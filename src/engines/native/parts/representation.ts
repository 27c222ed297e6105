import { parseContentRange } from "../../../net/byte-range.ts";
import type { HttpResponse } from "../../../net/client.ts";

/** What bytes are of (RFC 9110 §3.2), as the server told with them. */
export interface Representation {
  /** Of the final answer, without query and fragment, which often change with every run. */
  url: string;
  etag: string | null;
  lastModified: string | null;
  /** `lastModified` tells two representations apart (RFC 9110 §8.8.2.2). */
  isDateStrong: boolean;
  /** Bytes of the whole resource. */
  total: number | null;
  contentType: string | null;
}

export function representationOf({ url, status, headers }: HttpResponse): Representation {
  const lastModified = dateOf(headers.get("last-modified"));
  return {
    url: url.origin + url.pathname,
    etag: etagOf(headers.get("etag")),
    lastModified,
    isDateStrong: isEarlier(lastModified, dateOf(headers.get("date"))),
    total:
      status === 206
        ? (parseContentRange(headers.get("content-range"))?.total ?? null)
        : lengthOf(headers.get("content-length")),
    contentType: headers.get("content-type")?.slice(0, 200) ?? null,
  };
}

/** Whether there is a validator to tell by that the rest is of the same. */
export function isResumable({ etag, lastModified }: Representation): boolean {
  return etag !== null || lastModified !== null;
}

/** What to send as `If-Range`, which takes a strong validator only (RFC 9110 §13.1.5). */
export function ifRangeOf({ etag, lastModified, isDateStrong }: Representation): string | null {
  if (etag !== null) return isStrong(etag) ? etag : null;
  return isDateStrong ? lastModified : null;
}

/**
 * Whether the bytes of an answer to a request for the rest go on where those of `before` end. A strong
 * ETag says so by itself; with any other validator all that is known must be the same.
 */
export function isSameRepresentation(before: Representation, now: Representation): boolean {
  const isTotalSame = before.total === now.total;
  if (before.url !== now.url || before.etag !== now.etag) return false;
  if (before.etag !== null && isStrong(before.etag)) {
    return isTotalSame || before.total === null || now.total === null;
  }
  return isTotalSame && now.total !== null && before.lastModified === now.lastModified;
}

const isStrong = (etag: string): boolean => etag.startsWith('"');

/** RFC 9110 §8.8.3, in ASCII and not too long to be kept; anything else is no validator. */
function etagOf(value: string | undefined): string | null {
  return value !== undefined && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(value) ? value : null;
}

function dateOf(value: string | undefined): string | null {
  const isDate = value !== undefined && /^[\w ,:+-]{10,40}$/.test(value);
  return isDate && !Number.isNaN(Date.parse(value)) ? value : null;
}

/** By a minute or more, so that two clocks that differ a little don't matter. */
function isEarlier(modified: string | null, date: string | null): boolean {
  return modified !== null && date !== null && Date.parse(date) - Date.parse(modified) >= 60_000;
}

function lengthOf(value: string | undefined): number | null {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : null;
}
