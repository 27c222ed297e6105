import type { HttpClient } from "../../net/client.ts";
import { ServiceError } from "../../model/errors.ts";
import { createCookieJar } from "../../net/cookies.ts";
import type { StatedChapter } from "../../model/entry.ts";
import { audioDecision } from "../../model/format-ranking.ts";
import { PageInfo } from "../../model/page-info.ts";
import { listChapters } from "../../parsers/chapters.ts";
import { createTimeSlices } from "../../parsers/steps.ts";
import { type Content, readContent } from "./content.ts";
import { addCookies, addReferer } from "./formats.ts";
import { joinSubtitles } from "../../manifests/manifest.ts";
import { addSizes } from "./add-sizes.ts";
import { acceptPage, type FormatListing, LinkFetcher } from "./link-fetcher.ts";
import { findPlayers } from "./frames.ts";
import { type Fields, mergeMetadata, type PageMetadata } from "./merge.ts";
import { createBodies } from "./reader/bodies.ts";
import type { PageDraft, Reader } from "./reader/reader.ts";
import { startOf } from "../entries.ts";
import type { Resolver } from "../resolver.ts";
import { withEntries } from "./with-entries.ts";

export interface PageResolverOptions {
  /** The resolver closes it. */
  client: HttpClient;
  /** Reads what sites send. The resolver does not close it. */
  reader: Reader;
  /** Limit of a page or manifest that is resolved, decoded bytes. */
  pageMaxBytes: number;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Longest time for all requests that the page leads to (oEmbed, manifests, players), milliseconds; default 5,000. */
  linkTimeoutMs?: number;
}

const name = "page";

/** Pages from a page to its medium: a player's page may only lead to another one. */
const maxPlayerDepth = 2;

/** Share of the time before the caller's deadline that is left to the requests that the page leads to. */
const linkShare = 0.9;

/**
 * Creates a resolver that reads what a page states in the public vocabularies: JSON-LD and microdata
 * (schema.org), Open Graph, Twitter Cards, oEmbed, HTML, HLS and DASH; if these name no medium, what its
 * players are set up with, and the page of its embedded player. No rule is for a certain site.
 * If the URL is a media file or a manifest, it is described without downloading the medium. A feed, an M3U of several media and
 * a page that states no medium but an ItemList have `entries`.
 *
 * `resolve` rejects with the client's errors, and with `upstream_invalid` for a response that is neither
 * page nor medium. If a request that the page leads to fails or the time for it is over, the fields stay as the page
 * states them. For a download, the formats have the cookies that the page and its players have set.
 */
export function createPageResolver(options: PageResolverOptions): Resolver<typeof PageInfo> {
  const { client, reader, pageMaxBytes, now = () => new Date(), linkTimeoutMs = 5_000 } = options;
  const slices = createTimeSlices();
  const bodies = createBodies();
  return {
    name,
    output: PageInfo,
    async resolve(url, context) {
      const { signal, owner, forDownload = false, needsHeights = false, deadlineMs = Infinity } = context;
      const entriesStart = startOf(context.entriesCursor, name);
      const fetchedAt = now();
      const cookies = createCookieJar();
      reader.prepare();
      const response = await client.get(url, { signal, owner, maxBytes: pageMaxBytes, accept: acceptPage, cookies });
      using opened = bodies.open({ signal, owner });
      const reading = { reader, bodies: opened, signal, owner, now: fetchedAt };
      const content = await readContent(response, { ...reading, isPlayer: false, entriesStart });
      const remainingMs = Math.max(0, deadlineMs - performance.now());
      const linkFetcher = new LinkFetcher({
        ...reading,
        client,
        slices,
        cookies,
        pageUrl: response.url,
        pageMaxBytes,
        timeoutMs: Math.min(linkTimeoutMs, Math.floor(linkShare * remainingMs)),
      });
      const document = { content, url: response.url, from: null };
      const described = await describe(document, { linkFetcher, signal, requestedUrl: url });
      const stated = described.chapters === undefined ? context.chaptersUrl : undefined;
      const listed = stated === undefined ? [] : await linkFetcher.fetchChapters(stated, response.url);
      const divided = addChapters(described, listed, "playlist");
      const sized = await addSizes(divided, response.url, linkFetcher, { forDownload, needsHeights });
      const description = withEntries(sized, content, entriesStart);
      const info = { url: url.href, ...description, resolver: name, fetched_at: fetchedAt.toISOString() };
      return forDownload ? { ...info, formats: addCookies(info.formats, cookies.toText()) } : info;
    },
    close: () => client.close(),
  };
}

type Description = Omit<PageInfo, "url" | "resolver" | "fetched_at">;

/** A fetched page, manifest or file. */
interface Document {
  content: Content;
  url: URL;
  /** URL of the page that led to it; null: it was asked for. */
  from: URL | null;
}

interface DescribeDeps {
  linkFetcher: LinkFetcher;
  signal: AbortSignal;
  /** Before redirects. */
  requestedUrl: URL;
}

/**
 * Describes a document. If it is a page without a medium, those of its players that are pages are read too: what the
 * first one with a medium states of it is added. `depth` counts the pages that led to it.
 */
async function describe(document: Document, deps: DescribeDeps, depth = 0): Promise<Description> {
  const { content, url } = document;
  const page = await describeDocument(document, deps);
  const hasEnded = page.formats.length > 0 || depth === maxPlayerDepth;
  if (content.kind !== "page" || hasEnded) return page;
  const { frames } = content.draft;
  for (const playerUrl of findPlayers(page, { frames, url, isPlayer: depth > 0 })) {
    const fetched = await deps.linkFetcher.fetchPlayer(playerUrl, url);
    if (fetched === null) continue;
    const player = await describePlayer({ ...fetched, from: url }, deps, depth + 1);
    if (player !== null && player.formats.length > 0) return addPlayer(page, player);
  }
  return page;
}

/** Returns null if it is a manifest that cannot be read. */
async function describePlayer(player: Document, deps: DescribeDeps, depth: number): Promise<Description | null> {
  try {
    return await describe(player, deps, depth);
  } catch (error) {
    deps.signal.throwIfAborted();
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

async function describeDocument(document: Document, deps: DescribeDeps): Promise<Description> {
  const { content, url, from } = document;
  const { linkFetcher, requestedUrl } = deps;
  const referrer = content.kind === "page" ? url : from;
  // A download sends the requested page as `Referer` anyway.
  const stated = referrer?.href === requestedUrl.href ? null : referrer;
  if (content.kind === "manifest") {
    const manifest = await linkFetcher.readManifest({ ...content, url }, from);
    const { formats } = manifest;
    const media_type = formats[0]?.vcodec === "none" ? "audio" : "video";
    const { fields } = mergeMetadata({}, url);
    const listing = { ...manifest, hasManifest: true };
    return addListing({ ...fields, media_type }, listing, stated);
  }
  const { merged, oembed, chapters } =
    content.kind === "page"
      ? content.draft
      : { merged: mergeMetadata(statedBy(content), url), oembed: null, chapters: null };
  const [fields, listing, chaptersOfFile] = await Promise.all([
    oembed === null ? merged.fields : fetchFields(oembed, url, linkFetcher),
    linkFetcher.listFormats(merged.media, referrer ?? url),
    chapters === null ? [] : linkFetcher.fetchChapters(chapters, url),
  ]);
  return addChapters(addListing(fields, listing, stated), chaptersOfFile, "html");
}

/** Adds the chapters that a file states, which `source` names. */
function addChapters(page: Description, stated: readonly StatedChapter[], source: "html" | "playlist"): Description {
  const chapters = listChapters(stated, page.duration);
  return chapters.length === 0 ? page : { ...page, chapters, sources: { ...page.sources, chapters: source } };
}

function statedBy(content: Extract<Content, { kind: "media" | "list" }>): PageMetadata {
  return content.kind === "media" ? { media: content.metadata } : { [content.source]: content.list.metadata };
}

/** Returns the page's fields with those of its oEmbed response. */
async function fetchFields(
  { url: oembedUrl, metadata }: NonNullable<PageDraft["oembed"]>,
  url: URL,
  linkFetcher: LinkFetcher,
): Promise<Fields> {
  const oembed = await linkFetcher.fetchOembed(oembedUrl, url);
  return mergeMetadata({ ...metadata, oembed }, url).fields;
}

/** Adds to what a page states what its player states of the medium; the page takes precedence, subtitles are those of both. */
function addPlayer(page: Description, player: Description): Description {
  const sources = { ...page.sources };
  const added = {
    formats: player.formats,
    duration: page.duration ?? player.duration,
    live_status: page.live_status ?? player.live_status,
  };
  for (const field of ["formats", "duration", "live_status"] as const) {
    const source = player.sources[field];
    if (added[field] === player[field] && added[field] !== page[field] && source !== undefined) {
      sources[field] = source;
    }
  }
  if (player.sources["audio"] !== undefined) sources["audio"] = player.sources["audio"];
  const ofPlayer = player.sources["subtitles"];
  if (ofPlayer !== undefined) sources["subtitles"] ??= ofPlayer;
  const subtitles = joinSubtitles([page.subtitles, player.subtitles]);
  const media_type = page.media_type === "none" ? player.media_type : page.media_type;
  return { ...page, ...added, subtitles, media_type, sources };
}

/**
 * Adds to the page's fields what its manifests state; the page takes precedence. The formats demand the `Referer` of
 * the page `referrer`, if there is one.
 */
function addListing(fields: Fields, listing: FormatListing, referrer: URL | null): Description {
  const sources = { ...fields.sources };
  if (fields.duration === null && listing.duration !== null) sources["duration"] = "manifest";
  if (fields.live_status === null && listing.live_status !== null) {
    sources["live_status"] = "manifest";
  }
  if (listing.hasManifest && listing.formats.length > 0) sources["formats"] = "manifest";
  if (listing.formats.length === 0) delete sources["formats"];
  if (Object.keys(listing.subtitles).length > 0) sources["subtitles"] ??= "manifest";
  const decision = audioDecision({ ...fields, ...listing });
  const decided = decision === "role" ? "manifest" : decision === "language" ? sources["language"] : undefined;
  if (decided !== undefined) sources["audio"] = decided;
  return {
    ...fields,
    duration: fields.duration ?? listing.duration,
    live_status: fields.live_status ?? listing.live_status,
    formats: referrer === null ? listing.formats : addReferer(listing.formats, referrer),
    subtitles: joinSubtitles([fields.subtitles, listing.subtitles]),
    sources,
  };
}
