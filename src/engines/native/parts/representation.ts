import { parseContentRange } from "../../../net/byte-range.ts";
import type { HttpResponse } from "../../../net/client.ts";

/** The representation that bytes belong to (RFC 9110 §3.2), as the server describes it. */
export interface Representation {
  /** Of the final response, without query and fragment, which often differ between runs. */
  url: string;
  etag: string | null;
  lastModified: string | null;
  /** `lastModified` is a strong validator (RFC 9110 §8.8.2.2). */
  isDateStrong: boolean;
  /** Bytes of the whole resource; `null`: unknown. */
  total: number | null;
  contentType: string | null;
  /** Its response ends with the connection (RFC 9112 §6.3): nothing says whether that was too early. */
  endsWithConnection?: true;
}

/** Returns the representation whose bytes a response has. */
export function representationOf({ url, status, headers }: HttpResponse): Representation {
  const lastModified = dateOf(headers.get("last-modified"));
  return {
    url: withoutQuery(url),
    etag: etagOf(headers.get("etag")),
    lastModified,
    isDateStrong: isEarlier(lastModified, dateOf(headers.get("date"))),
    total:
      status === 206
        ? (parseContentRange(headers.get("content-range"))?.total ?? null)
        : lengthOf(headers.get("content-length")),
    contentType: headers.get("content-type")?.slice(0, 200) ?? null,
    ...(!undelimited.has(status) &&
      !delimiting.some((name) => headers.has(name)) && { endsWithConnection: true as const }),
  };
}

/** Statuses of which a response is not delimited by these headers: 206 states its range, and 204 has no content. */
const undelimited: ReadonlySet<number> = new Set([204, 206]);
/** Headers without which a response ends with its connection. */
const delimiting = ["content-length", "transfer-encoding", "content-encoding"];

/** Returns the URL without query and fragment, where tokens are. */
export function withoutQuery({ origin, pathname }: URL): string {
  return origin + pathname;
}

/** Whether a validator can show that the rest belongs to the same representation: a weak ETag cannot (RFC 9110 §13.1.5). */
export function isResumable({ etag, lastModified }: Representation): boolean {
  return lastModified !== null || (etag !== null && isStrong(etag));
}

/** Returns the value of `If-Range`, a strong validator (RFC 9110 §13.1.5); `null` if there is none. */
export function ifRangeOf({ etag, lastModified, isDateStrong }: Representation): string | null {
  if (etag !== null) return isStrong(etag) ? etag : null;
  return isDateStrong ? lastModified : null;
}

/**
 * Whether a response to a request for the rest continues the bytes of `before`. A strong ETag is enough;
 * with any other validator everything known must be equal.
 *
 * @param isMoved The rest was requested at another URL. The caller then compares bytes too: validators say
 * nothing about two resources.
 */
export function isSameRepresentation(before: Representation, now: Representation, isMoved: boolean): boolean {
  const isTotalSame = before.total === now.total;
  if ((!isMoved && before.url !== now.url) || before.etag !== now.etag) return false;
  if (before.etag !== null && isStrong(before.etag)) {
    return isTotalSame || (!isMoved && (before.total === null || now.total === null));
  }
  return isTotalSame && now.total !== null && before.lastModified === now.lastModified;
}

/** Returns the length that the whole resource still has: the same strong validator says that nothing has changed; `null`: unknown. */
export function unchangedTotal(before: Representation, now: Representation): number | null {
  const validator = ifRangeOf(before);
  return validator !== null && validator === ifRangeOf(now) && before.url === now.url ? before.total : null;
}

const isStrong = (etag: string): boolean => etag.startsWith('"');

/** Returns an ASCII entity tag (RFC 9110 §8.8.3) of at most 500 characters; any other is no validator. */
function etagOf(value: string | undefined): string | null {
  return value !== undefined && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(value) ? value : null;
}

function dateOf(value: string | undefined): string | null {
  const isDate = value !== undefined && /^[\w ,:+-]{10,40}$/.test(value);
  return isDate && !Number.isNaN(Date.parse(value)) ? value : null;
}

/** By at least a minute, so that a small clock difference does not matter. */
function isEarlier(modified: string | null, date: string | null): boolean {
  return modified !== null && date !== null && Date.parse(date) - Date.parse(modified) >= 60_000;
}

function lengthOf(value: string | undefined): number | null {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : null;
}
