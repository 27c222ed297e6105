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

const frontPath = /^\/(?:([a-z]{2})(?:[-_]([a-z]{2}))?\/?)?(?:(?:index|home|default)\.\w{2,5})?$/i;

/**
 * Whether this is a site's front page, also of one language or country (`/en/`, `/us`). Two letters may mean something else (`/tv`): if
 * the page was read, they must be its language, or the country of that, most likely (`/us` of `en`).
 *
 * @param language What the page states, as `parseLanguage` returns it; absent: the page was not read.
 */
export function isFrontPage(url: URL, language?: string | null): boolean {
  const match = url.search === "" ? frontPath.exec(url.pathname) : null;
  if (match?.[1] === undefined || language === undefined) return match !== null;
  if (language === null || language.startsWith("x-")) return false;
  const { language: spoken, region } = new Intl.Locale(language).maximize();
  // Paths call the United Kingdom as its domain is called.
  const codes = new Set([spoken, region?.toLowerCase(), region === "GB" ? "uk" : undefined]);
  return match.slice(1).some((code) => code !== undefined && codes.has(code.toLowerCase()));
}
