const maxLength = 8_192;

/** What templates leave behind, and markup where an address should be. */
const noAddress = /^(?:undefined|null|none|false|nan|n\/a|#.*)$|[<>]/i;

/**
 * `value` as an absolute http or https address without credentials, of at most 8,192 characters as
 * written and percent-encoded; `null` for any other. A host
 * without a scheme is understood if it begins with `www.`.
 */
export function tryParseUrl(value: string | null | undefined, base: URL): URL | null {
  const text = value?.trim() ?? "";
  if (text === "" || text.length > maxLength || noAddress.test(text)) return null;
  const url = URL.parse(/^www\.[^/]/i.test(text) ? `https://${text}` : text, base);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return null;
  if (url.username !== "" || url.password !== "" || url.hostname === "") return null;
  return url.href.length <= maxLength ? url : null;
}

/** Whether both lead to the same page: scheme, `www.`, fragment and a final slash do not count. */
export function isSamePage(a: URL, b: URL): boolean {
  return pageKey(a) === pageKey(b);
}

const frontPath = /^\/(?:[a-z]{2}(?:[-_][a-z]{2})?\/?)?(?:(?:index|home|default)\.\w{2,5})?$/i;

/** Whether it is a site's root, in whatever language. */
export function isFrontPage(url: URL): boolean {
  return url.search === "" && frontPath.test(url.pathname);
}

/**
 * What an address calls its resource, for want of a title: the last part of its path without an
 * extension; `null` where there is none.
 */
export function nameInPath(address: string): string | null {
  const last = URL.parse(address)?.pathname.split("/").at(-1) ?? "";
  const stem = last.replace(/\.[a-z\d]{2,5}$/i, "");
  try {
    return decodeURIComponent(stem) || null;
  } catch {
    return stem;
  }
}

function pageKey(url: URL): string {
  return `${url.host.replace(/^www\./, "")}${url.pathname.replace(/\/+$/, "")}${url.search}`;
}
