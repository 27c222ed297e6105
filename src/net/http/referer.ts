/** Longest value; of a longer URL only the origin is sent (Referrer Policy §8.4). */
const maxLength = 4096;

/**
 * Returns the `Referer` that a browser sends with a request for `url` from the page `page`, by the policy
 * `strict-origin-when-cross-origin`: the page's URL to its own origin, only its origin to others, nothing
 * from https to http.
 */
export function refererOf(page: URL, url: URL): string | undefined {
  if (page.protocol === "https:" && url.protocol !== "https:") return undefined;
  const full = page.origin + page.pathname + page.search;
  return page.origin === url.origin && full.length <= maxLength ? full : `${page.origin}/`;
}
