import { orServiceError } from "../../async/deadline.ts";
import { ServiceError } from "../../model/errors.ts";
import type { StatedChapter } from "../../model/entry.ts";
import { audioDecision } from "../../model/format-ranking.ts";
import type { PageInfo } from "../../model/page-info.ts";
import { joinSubtitles } from "../../manifests/manifest.ts";
import { listChapters } from "../chapters.ts";
import { isFrontPage } from "../../parsers/url.ts";
import type { Content } from "./content.ts";
import { addReferer } from "./formats.ts";
import { findPlayers } from "./frames.ts";
import type { FormatListing, LinkFetcher } from "./link-fetcher.ts";
import { type Fields, mergeMetadata, type PageMetadata } from "./merge.ts";
import type { PageDraft } from "./reader/reader.ts";

/** Pages that only send the browser on, one after another. */
const maxRefreshes = 3;

/** Pages from a page to its medium: a player's page may only lead to another one. */
const maxPlayerDepth = 2;

export type Description = Omit<PageInfo, "url" | "resolver" | "fetched_at">;

/** A fetched page, manifest or file. */
interface Document {
  content: Content;
  url: URL;
  /** URL of the page that led to it; null: there is none. */
  from: URL | null;
}

interface DescribeDeps {
  linkFetcher: LinkFetcher;
  signal: AbortSignal;
  /** Before redirects. */
  requestedUrl: URL;
  /** Entries of a list before those that are wanted. */
  entriesStart: number;
}

/**
 * Describes a document, or where pages that only send the browser on end, if that is a medium, or a page that has or lists some. It is
 * never a front page: pages that are gone lead there.
 */
export async function describeEnd(
  document: Document,
  deps: DescribeDeps,
  refreshes = 0,
): Promise<{ described: Description; end: Document }> {
  const { content, url } = document;
  const described = await describe(document, deps);
  const hasEnded = hasMedia(described, content) || refreshes === maxRefreshes;
  const refresh = content.kind === "page" && !hasEnded ? content.draft.refresh : null;
  if (refresh === null || isFrontPage(refresh)) return { described, end: document };
  const { linkFetcher, entriesStart } = deps;
  const fetched = await linkFetcher.fetchPage(refresh, url, { isPlayer: false, entriesStart });
  if (fetched !== null && !isFrontPage(fetched.url)) {
    const next = await describeEnd({ ...fetched, from: url }, deps, refreshes + 1);
    if (hasMedia(next.described, next.end.content)) return next;
  }
  return { described, end: document };
}

function hasMedia({ formats, entries = [] }: Description, { kind }: Content): boolean {
  return kind !== "page" || formats.length > 0 || entries.length > 0;
}

/**
 * Describes a document. If it is a page without a medium, or with only a trailer, its players that are pages are read too: what the first
 * one with a medium states is added, in the trailer's place. `depth` counts the pages that led to it.
 */
async function describe(document: Document, deps: DescribeDeps, depth = 0): Promise<Description> {
  const { content, url } = document;
  const page = await describeDocument(document, deps);
  if (content.kind !== "page" || depth === maxPlayerDepth) return page;
  const { frames, isTrailer, merged } = content.draft;
  if (page.formats.length > 0 && !isTrailer) return page;
  for (const playerUrl of findPlayers(page, { frames, url, isPlayer: depth > 0 })) {
    const fetched = await deps.linkFetcher.fetchPage(playerUrl, url, { isPlayer: true, entriesStart: 0 });
    if (fetched === null) continue;
    const player = await orServiceError(deps.signal, () => describe({ ...fetched, from: url }, deps, depth + 1));
    if (player instanceof ServiceError || player.formats.length === 0) continue;
    const { duration, live_status } = merged.fields;
    const { subtitles: _, ...sources } = merged.fields.sources;
    return addPlayer(isTrailer ? { ...page, duration, live_status, sources, subtitles: {} } : page, player);
  }
  return page;
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
export function addChapters(
  page: Description,
  stated: readonly StatedChapter[],
  source: "html" | "playlist",
): Description {
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
  const sourcesOf = (...fields: string[]) =>
    Object.fromEntries(Object.entries(player.sources).filter(([field]) => fields.includes(field)));
  return {
    ...page,
    formats: player.formats,
    ...(player.warnings && { warnings: player.warnings }),
    duration: page.duration ?? player.duration,
    live_status: page.live_status ?? player.live_status,
    subtitles: joinSubtitles([page.subtitles, player.subtitles]),
    media_type: page.media_type === "none" ? player.media_type : page.media_type,
    sources: {
      ...sourcesOf("duration", "live_status", "subtitles"),
      ...page.sources,
      ...sourcesOf("formats", "audio"),
    },
  };
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
    ...(listing.warnings && { warnings: listing.warnings }),
    sources,
  };
}
