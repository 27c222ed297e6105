import { ServiceError } from "../../model/errors.ts";
import type { HeadersFor } from "../client.ts";
import { parseCookies } from "../cookies.ts";

/** What a site demands of the requests for a format. */
interface SiteDemands {
  /** URL of the file or manifest. */
  url: string;
  http_headers?: Readonly<Record<string, string>>;
  /** As `parseCookies` reads them. */
  cookies?: string;
}

/**
 * Header fields that a site may choose, by name in lower case, as they are written. All others say how this client
 * connects and what it asks for.
 */
export const siteHeaderNames: ReadonlyMap<string, string> = new Map(
  ["Authorization", "Origin", "Referer", "User-Agent"].map((name) => [name.toLowerCase(), name]),
);

/** Of the value of a header field, characters; of a longer `Referer` only the origin is sent (Referrer Policy §8.4). */
const maxValueLength = 4096;

/** Whether this can be the value of a header field: ASCII without control characters (RFC 9110 §5.5), not too long. */
export function isFieldValue(text: string, maxLength = maxValueLength): boolean {
  return text.length <= maxLength && /^[\t\x20-\x7e]*$/.test(text);
}

/**
 * Returns the header fields of all requests that a format leads to: those of its `http_headers` that a site may choose, and its cookies where
 * they apply. The `Referer` is its own (none if that is empty), else that of the page at `pageUrl`. `Authorization` is sent only to the
 * origin of `demands.url`.
 *
 * @throws ServiceError `upstream_invalid` if a value cannot be in a header field (RFC 9110 §5.5)
 */
export function createSiteHeaders(demands: SiteDemands, pageUrl: string): HeadersFor {
  const { origin, hostname } = new URL(demands.url);
  const { authorization, referer, ...fixed } = readHeaders(demands.http_headers ?? {});
  const cookies = parseCookies(demands.cookies ?? "", hostname);
  const page = URL.parse(pageUrl);
  return (url) =>
    known({
      ...fixed,
      authorization: url.origin === origin ? authorization : undefined,
      referer: referer ?? (page === null ? undefined : refererOf(page, url)),
      cookie: cookies.fieldFor(url),
    });
}

/** Returns the `Referer` field of requests that the page at `page` leads to. */
export function createPageHeaders(page: URL): HeadersFor {
  return (url) => known({ referer: refererOf(page, url) });
}

/**
 * Returns the `Referer` that a browser sends with a request for `url` from the page `page`, by the policy
 * `strict-origin-when-cross-origin`: the page's URL to its own origin, only its origin to others, nothing
 * from https to http.
 */
export function refererOf(page: URL, url: URL): string | undefined {
  if (page.protocol === "https:" && url.protocol !== "https:") return undefined;
  const full = page.origin + page.pathname + page.search;
  return page.origin === url.origin && full.length <= maxValueLength ? full : `${page.origin}/`;
}

function readHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const fields = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
    .filter(([name]) => siteHeaderNames.has(name));
  for (const [name, value] of fields) {
    if (isFieldValue(value)) continue;
    const rule = `must be at most ${maxValueLength} characters of ASCII without control characters`;
    throw new ServiceError("upstream_invalid", `the request header ${name} of the format ${rule}`);
  }
  return Object.fromEntries(fields);
}

/** Leaves out what is missing or empty. */
function known(fields: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter((field): field is [string, string] => Boolean(field[1])));
}
