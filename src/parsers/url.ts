const maxLength = 8_192;

/** Unfilled placeholders of templates, and markup. */
const placeholder = /^(?:undefined|null|none|false|nan|n\/a|#.*)$|[<>]/i;

/**
 * Parses an http or https URL, resolved against `base`: without credentials, at most 8,192 characters long, both as
 * written and percent-encoded. A host that starts with `www.` needs no scheme. Returns `null` for anything else.
 */
export function tryParseUrl(value: string | null | undefined, base: URL): URL | null {
  const text = value?.trim() ?? "";
  if (text === "" || text.length > maxLength || placeholder.test(text)) return null;
  const url = URL.parse(/^www\.[^/]/i.test(text) ? `https://${text}` : text, base);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return null;
  if (url.username !== "" || url.password !== "" || url.hostname === "") return null;
  return url.href.length <= maxLength ? url : null;
}

/** Returns the URLs among `values`, each parsed as by `tryParseUrl`. */
export function parseUrls(values: readonly (string | null | undefined)[], base: URL): URL[] {
  return values.flatMap((value) => tryParseUrl(value, base) ?? []);
}

/** Whether both are URLs of the same page; ignores scheme, `www.`, fragment and a final slash. */
export function isSamePage(a: URL, b: URL): boolean {
  return pageKey(a) === pageKey(b);
}

/** Returns a text that is the same for all URLs of one page (`isSamePage`). */
export function pageKey({ host, pathname, search }: URL): string {
  let end = pathname.length;
  // A pattern such as /\/+$/ takes quadratic time.
  while (pathname[end - 1] === "/") end -= 1;
  return `${host.replace(/^www\./, "")}${pathname.slice(0, end)}${search}`;
}

const frontPath = /^\/(?:[a-z]{2}(?:[-_][a-z]{2})?\/?)?(?:(?:index|home|default)\.\w{2,5})?$/i;

/** Whether this is a site's front page, also of one language (`/en/`). */
export function isFrontPage(url: URL): boolean {
  return url.search === "" && frontPath.test(url.pathname);
}
