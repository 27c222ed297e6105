import { ServiceError } from "../model/errors.ts";
import { orServiceError, startDeadline } from "../async/deadline.ts";
import { urlForMessage } from "../net/http-url.ts";
import { PageInfo } from "../model/page-info.ts";
import { listerOf } from "./entries.ts";
import { OtherXmlError } from "./page/content.ts";
import { createPageResolver, type PageResolverOptions } from "./page/page-resolver.ts";
import { measureResolver, type ResolverObserver } from "./wrappers.ts";
import type { ResolveContext, Resolver } from "./resolver.ts";
import { openYtDlpResolver, type YtDlpResolver, type YtDlpResolverDeps } from "./ytdlp/ytdlp-resolver.ts";

interface AutoResolverOptions {
  /** The resolver closes both. */
  page: Resolver<typeof PageInfo>;
  ytDlp: YtDlpResolver;
  /** Whether yt-dlp has the cookies of a login. */
  hasLogin?: boolean;
}

/** Opens the resolvers that `createAutoResolver` uses; without yt-dlp, returns the page resolver. */
export async function openAutoResolver(
  deps: PageResolverOptions & YtDlpResolverDeps & { onResolved?: ResolverObserver | undefined },
): Promise<Resolver<typeof PageInfo>> {
  const ytDlp = await openYtDlpResolver(deps);
  const page = createPageResolver(deps);
  if (ytDlp === undefined) return page;
  const measure = <R extends Resolver>(resolver: R) => measureResolver(resolver, deps.onResolved);
  return createAutoResolver({
    page: measure(page),
    ytDlp: measure(ytDlp),
    hasLogin: deps.ytDlp.cookiesFile !== "",
  });
}

/** Share of the time before the caller's deadline that yt-dlp may take if the page is to be read after it. */
const firstShare = 2 / 3;

/** Share of the time that the second of both may take: what the first one knows must be returned in time. */
const lastShare = 0.9;

/** A record, or why there is none. */
type Outcome = PageInfo | ServiceError;

/**
 * Creates a resolver that uses yt-dlp where it helps.
 *
 * - If yt-dlp has an extractor for the URL, yt-dlp is asked first, and the page is read only if that gives
 *   neither formats nor entries.
 * - Otherwise the page is read first, and yt-dlp's generic extractor is asked only if the page has no
 *   formats, is an XML document that the reader of pages does not know, or is refused (401, 403) and yt-dlp has a login.
 *   If the page cannot be read, that error counts. A list that a page of HTML states does not count if yt-dlp finds formats.
 * - What the first record does not know is taken from the second; `sources` says so. Of a page that was redirected where
 *   yt-dlp was not, nothing is taken.
 *   `resolver` names the one that found the formats, else the first.
 *
 * Further entries of a playlist come from the one that has listed the first ones.
 *
 * yt-dlp, if asked first, gets a share of the time before the caller's deadline. The second one gets a share of what is left, so that
 * what the first one knows is returned in time.
 *
 * If both fail, yt-dlp's error counts, unless it says nothing about the page (`unavailable`,
 * `upstream_invalid`). If yt-dlp finds nothing, the page's error counts. If yt-dlp fails and the page has no formats, a download gets yt-dlp's error; otherwise
 * the page's record counts, unless it has no medium and yt-dlp says why (`login_required`, `geo_restricted`).
 */
export function createAutoResolver({ page, ytDlp, hasLogin = false }: AutoResolverOptions): Resolver<typeof PageInfo> {
  async function ask(url: URL, share: number, context: ResolveContext): Promise<Outcome> {
    const what = `yt-dlp for ${urlForMessage(url)}`;
    return withinShare(share, context, what, (own) => ytDlp.resolve(url, own));
  }

  async function askFirst(url: URL, context: ResolveContext): Promise<PageInfo> {
    const found = await ask(url, firstShare, context);
    if (isRecord(found) && hasMedia(found)) return found;
    const what = `reading ${urlForMessage(url)}`;
    const read = await withinShare(lastShare, context, what, (own) => page.resolve(url, own));
    if (isRecord(read)) return isRecord(found) ? fill(found, read) : decide(read, found, context);
    if (!isRecord(found)) throw tellsOfPage(found) ? found : read;
    // What knows nothing must not hide that the page cannot be read.
    if (Object.keys(found.sources).length === 0) throw read;
    return found;
  }

  async function readFirst(url: URL, context: ResolveContext, failure: ServiceError | null): Promise<PageInfo> {
    const read = await page.resolve(url, context).catch((error: unknown) => keepForYtDlp(error, hasLogin));
    if (isRecord(read) && hasMedia(read) && !isListOnPage(read)) return read;
    const found = failure ?? (await ask(url, lastShare, context));
    if (!isRecord(read)) {
      if (isRecord(found) && hasMedia(found)) return found;
      throw read;
    }
    if (!isRecord(found)) return decide(read, found, context);
    if (hasMedia(found) && isRedirectedAlone(read, found)) return found;
    return fill(found.formats.length > 0 ? withoutEntries(read) : read, found);
  }

  return {
    name: "auto",
    output: PageInfo,
    ...(ytDlp.unenforced && { unenforced: ytDlp.unenforced }),
    identify: async (url, signal, owner) => ytDlp.identify?.(url, signal, owner),
    async resolve(url, context) {
      const lister = listerOf(context.entriesCursor);
      if (lister !== undefined) return (lister === "page" ? page : ytDlp).resolve(url, context);
      const what = `yt-dlp's extractor for ${urlForMessage(url)}`;
      const find = ({ signal, owner }: ResolveContext) => ytDlp.findExtractor(url, signal, owner);
      const extractor = await withinShare(firstShare, context, what, find);
      return typeof extractor === "string" ? askFirst(url, context) : readFirst(url, context, extractor);
    },
    async close() {
      await Promise.all([page.close(), ytDlp.close()]);
    },
  };
}

/**
 * Returns what `request` gives, or its error; `upstream_timeout` once a share of the time before the caller's deadline
 * is over. Rejects when the caller's signal is aborted.
 */
async function withinShare<T>(
  share: number,
  context: ResolveContext,
  what: string,
  request: (own: ResolveContext) => Promise<T>,
): Promise<T | ServiceError> {
  const { signal, deadlineMs = Infinity } = context;
  const startedMs = performance.now();
  const shareMs = Math.max(0, Math.floor(share * (deadlineMs - startedMs)));
  using deadline = startDeadline(signal, shareMs, what);
  const own = { ...context, signal: deadline.signal, deadlineMs: startedMs + shareMs };
  return await orServiceError(signal, () => request(own));
}

/** Returns the error if yt-dlp may know the document, or be let in with its login; throws all others. */
function keepForYtDlp(error: unknown, hasLogin: boolean): ServiceError {
  if (error instanceof OtherXmlError) return error;
  if (hasLogin && error instanceof ServiceError && [401, 403].includes(error.upstreamStatus ?? 0)) return error;
  throw error;
}

function isRecord(outcome: Outcome): outcome is PageInfo {
  return !(outcome instanceof ServiceError);
}

function hasMedia({ formats, entries = [] }: PageInfo): boolean {
  return formats.length > 0 || entries.length > 0;
}

/** Whether a page of HTML states a list: it may stand beside a video that only yt-dlp finds, and is not the page then. */
function isListOnPage({ formats, sources }: PageInfo): boolean {
  return formats.length === 0 && (sources["entries"] === "json-ld" || sources["entries"] === "microdata");
}

/**
 * Whether the page was redirected and yt-dlp was not, as to a login of which yt-dlp has the cookies: then they have read
 * different pages.
 */
function isRedirectedAlone(read: PageInfo, found: PageInfo): boolean {
  const isRedirected = read.webpage_url !== read.url && read.sources["webpage_url"] === undefined;
  return isRedirected && found.webpage_url === found.url;
}

function withoutEntries(info: PageInfo): PageInfo {
  const { entries: _, entries_next: __, entries_count: ___, ...rest } = info;
  const { entries: ____, entries_next: _____, entries_count: ______, ...sources } = info.sources;
  return { ...rest, sources };
}

/** Returns the page's record, or throws why yt-dlp has no formats either. */
function decide(read: PageInfo, failure: ServiceError, { forDownload = false }: ResolveContext): PageInfo {
  if (hasMedia(read)) return read;
  const isReason = failure.code === "login_required" || failure.code === "geo_restricted";
  if (forDownload || (isReason && read.media_type === "none")) throw failure;
  return read;
}

function tellsOfPage({ code }: ServiceError): boolean {
  return code !== "unavailable" && code !== "upstream_invalid";
}

/** Returns the first record, with what only the second one knows. */
function fill(first: PageInfo, second: PageInfo): PageInfo {
  const added = new Set(Object.keys(second.sources)).difference(new Set(Object.keys(first.sources)));
  const warnings = [...(first.warnings ?? []), ...(second.warnings ?? [])];
  const warned = warnings.length > 0 ? { warnings: warnings.slice(0, 8) } : {};
  const pick = <T>(from: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(from).filter(([field]) => added.has(field)));
  const { extractor = first.extractor, extractor_version = first.extractor_version } = second;
  return {
    ...first,
    ...(pick<unknown>(second) as Partial<PageInfo>),
    media_type: first.media_type === "none" ? second.media_type : first.media_type,
    sources: { ...first.sources, ...pick(second.sources) },
    resolver: hasMedia(second) ? second.resolver : first.resolver,
    ...warned,
    ...(extractor !== undefined && { extractor }),
    ...(extractor_version !== undefined && { extractor_version }),
  };
}
