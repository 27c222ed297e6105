import type { HttpClient } from "../net/client.ts";
import { PageInfo } from "../page-info.ts";
import { createTimeSlices, type TimeSlices } from "../parsers/steps.ts";
import { tryParseUrl } from "../parsers/url.ts";
import { type Content, readContent } from "./page/content.ts";
import { createDraft } from "./page/draft.ts";
import { bestFormats } from "./page/formats.ts";
import {
  acceptPage,
  createLinkFetcher,
  type FormatListing,
  type LinkFetcher,
} from "./page/link-fetcher.ts";
import { findPlayers } from "./page/frames.ts";
import type { Markup } from "./page/markup/markup.ts";
import { type Fields, mergeMetadata } from "./page/merge.ts";
import type { Metadata } from "./page/metadata.ts";
import { linksOf } from "./page/vocabularies/html-metadata.ts";
import type { Resolver } from "./resolver.ts";

export interface PageResolverOptions {
  /** The resolver closes it. */
  client: HttpClient;
  /** Limit of a page or manifest that is resolved, decoded bytes. */
  pageMaxBytes: number;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Timeout of each request that the page leads to (oEmbed, manifests), milliseconds; default 5,000. */
  linkTimeoutMs?: number;
}

const name = "page";

/**
 * Creates a resolver that reads what a page states in the public vocabularies: JSON-LD and microdata
 * (schema.org), Open Graph, Twitter Cards, oEmbed, HTML, HLS and DASH; if these name no medium, what its
 * players are set up with, and the page of its embedded player. No rule is for a certain site.
 * If the URL is a media file or a manifest, it is described without downloading the medium.
 *
 * `resolve` rejects with the client's errors, and with `upstream_invalid` for a response that is neither
 * page nor medium. If a request that the page leads to fails, its fields stay as the page states them.
 * All calls together take the event loop for a few milliseconds at a time, whatever the pages are.
 */
export function createPageResolver(options: PageResolverOptions): Resolver<typeof PageInfo> {
  const { client, pageMaxBytes, now = () => new Date(), linkTimeoutMs = 5_000 } = options;
  const slices = createTimeSlices();
  return {
    name,
    output: PageInfo,
    async resolve(url, { signal }) {
      const fetchedAt = now();
      const response = await client.get(url, {
        signal,
        maxBytes: pageMaxBytes,
        accept: acceptPage,
      });
      const content = await readContent(response, slices, signal);
      const linkFetcher = createLinkFetcher({
        client,
        slices,
        signal,
        pageMaxBytes,
        timeoutMs: linkTimeoutMs,
      });
      const deps = { linkFetcher, slices, signal, now: fetchedAt };
      const description = await describe(content, response.url, deps);
      // Copied: substrings would keep the whole page in memory as long as the record.
      return structuredClone({
        url: url.href,
        ...description,
        resolver: name,
        fetched_at: fetchedAt.toISOString(),
      });
    },
    close: () => client.close(),
  };
}

type Description = Omit<PageInfo, "url" | "resolver" | "fetched_at">;

interface DescribeDeps {
  linkFetcher: LinkFetcher;
  slices: TimeSlices;
  signal: AbortSignal;
  now: Date;
}

/**
 * Describes a page. If it has no medium, those of its players that are pages are read too: what the first one with a
 * medium states of it is added. A player within a player's page is not read.
 */
async function describe(content: Content, url: URL, deps: DescribeDeps): Promise<Description> {
  const page = await describeContent(content, url, deps);
  if (content.kind !== "page" || page.formats.length > 0) return page;
  for (const playerUrl of findPlayers(page, content.markup, url)) {
    const response = await deps.linkFetcher.fetchPlayer(playerUrl);
    if (response === null) continue;
    const isPlayer = true;
    const player = await describeContent(response.content, response.url, deps, isPlayer);
    if (player.formats.length > 0) return addPlayer(page, player);
  }
  return page;
}

async function describeContent(
  content: Content,
  url: URL,
  { linkFetcher, slices, signal, now }: DescribeDeps,
  isPlayer = false,
): Promise<Description> {
  if (content.kind === "manifest") {
    const formats = bestFormats(content.manifest.formats);
    const media_type = formats[0]?.vcodec === "none" ? "audio" : "video";
    const { fields } = mergeMetadata({}, url);
    const listing = { ...content.manifest, formats, hasManifest: true };
    return addListing({ ...fields, media_type }, listing);
  }
  const { metadata, merged } = await slices.run(createDraft(content, url, now), signal);
  const hasOembed = content.kind === "page" && !isPlayer;
  const [oembed, listing] = await Promise.all([
    hasOembed ? fetchOembed(content.markup, merged.fields, url, linkFetcher) : null,
    linkFetcher.listFormats(merged.media),
  ]);
  const { fields } = oembed === null ? merged : mergeMetadata({ ...metadata, oembed }, url);
  return addListing(fields, listing);
}

/** Fetches the page's oEmbed response; returns null if there is none or the page states all its fields. */
async function fetchOembed(
  markup: Markup,
  { title, uploader, duration, embed, thumbnails }: Fields,
  url: URL,
  linkFetcher: LinkFetcher,
): Promise<Metadata | null> {
  const isComplete = [title, uploader, duration, embed, thumbnails[0] ?? null].every(
    (value) => value !== null,
  );
  const link = linksOf(markup, "alternate").find((each) =>
    /^(?:application\/json|text\/xml)\+oembed\b/i.test(each.get("type")?.trim() ?? ""),
  );
  const oembedUrl = tryParseUrl(link?.get("href"), tryParseUrl(markup.base, url) ?? url);
  return isComplete || oembedUrl === null ? null : linkFetcher.fetchOembed(oembedUrl);
}

/** Adds to what a page states what its player states of the medium; the page takes precedence. */
function addPlayer(page: Description, player: Description): Description {
  const sources = { ...page.sources };
  const hasSubtitles = Object.keys(page.subtitles).length > 0;
  const added = {
    formats: player.formats,
    duration: page.duration ?? player.duration,
    live_status: page.live_status ?? player.live_status,
    subtitles: hasSubtitles ? page.subtitles : player.subtitles,
  };
  for (const field of ["formats", "duration", "live_status", "subtitles"] as const) {
    const source = player.sources[field];
    if (added[field] === player[field] && added[field] !== page[field] && source !== undefined) {
      sources[field] = source;
    }
  }
  const media_type = page.media_type === "none" ? player.media_type : page.media_type;
  return { ...page, ...added, media_type, sources };
}

/** Adds to the page's fields what its manifests state; the page takes precedence. */
function addListing(fields: Fields, listing: FormatListing): Description {
  const sources = { ...fields.sources };
  if (fields.duration === null && listing.duration !== null) sources["duration"] = "manifest";
  if (fields.live_status === null && listing.live_status !== null) {
    sources["live_status"] = "manifest";
  }
  if (listing.hasManifest && listing.formats.length > 0) sources["formats"] = "manifest";
  if (listing.formats.length === 0) delete sources["formats"];
  if (Object.keys(listing.subtitles).length > 0) sources["subtitles"] ??= "manifest";
  return {
    ...fields,
    duration: fields.duration ?? listing.duration,
    live_status: fields.live_status ?? listing.live_status,
    formats: listing.formats,
    subtitles: { ...listing.subtitles, ...fields.subtitles },
    sources,
  };
}
