import type { HttpResponse, HttpClient } from "../net/client.ts";
import { PageInfo } from "../page-info.ts";
import { tryParseUrl } from "../parsers/url.ts";
import { type Content, readContent } from "./page/content.ts";
import type { Metadata } from "./page/metadata.ts";
import { type LinkFetcher, type FormatListing, createLinkFetcher } from "./page/link-fetcher.ts";
import { bestFormats } from "./page/formats.ts";
import { linksOf } from "./page/vocabularies/html-metadata.ts";
import type { Markup } from "./page/markup/markup.ts";
import { type Fields, mergeMetadata } from "./page/merge.ts";
import { extractMetadata } from "./page/extract-metadata.ts";
import type { Resolver } from "./resolver.ts";

export interface PageResolverOptions {
  /** Closed together with the resolver. */
  client: HttpClient;
  /** Limit of a page or manifest that was asked for, decoded bytes. */
  pageMaxBytes: number;
  now?: () => Date;
  /** How long the page's own facts wait for what it leads to, milliseconds; default 5,000. */
  followTimeoutMs?: number;
}

const name = "page";
const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/**
 * Tells what any page says about itself in the public vocabularies: JSON-LD and microdata
 * (schema.org), Open Graph, Twitter Cards, oEmbed, HTML, HLS and DASH. No rule is for a certain site.
 * An address that is a media file or a manifest itself is described without downloading the medium.
 *
 * `resolve` rejects with the client's errors, and with `upstream_invalid` for what is neither page nor
 * medium. Requests that the page leads to (oEmbed, manifests) may fail without harm.
 */
export function createPageResolver(options: PageResolverOptions): Resolver<typeof PageInfo> {
  const { client, pageMaxBytes, now = () => new Date(), followTimeoutMs = 5_000 } = options;
  return {
    name,
    output: PageInfo,
    async resolve(url, { signal }) {
      const fetchedAt = now();
      const answer = await client.get(url, { signal, maxBytes: pageMaxBytes, accept });
      const content = await readContent(answer);
      const found = await describe(
        content,
        answer,
        createLinkFetcher(client, signal, followTimeoutMs),
        fetchedAt,
      );
      // Copied, since substrings would keep the whole page in memory as long as the record lives.
      return structuredClone({
        url: url.href,
        ...found,
        resolver: name,
        fetched_at: fetchedAt.toISOString(),
      });
    },
    close: () => client.close(),
  };
}

type Description = Omit<PageInfo, "url" | "resolver" | "fetched_at">;

async function describe(
  content: Content,
  { url }: HttpResponse,
  follower: LinkFetcher,
  now: Date,
): Promise<Description> {
  if (content.kind === "manifest") {
    const formats = bestFormats(content.manifest.formats);
    const media_type = formats[0]?.vcodec === "none" ? "audio" : "video";
    const { fields } = mergeMetadata({}, url);
    return combine({ ...fields, media_type }, { ...content.manifest, formats, isRead: true });
  }
  const metadata =
    content.kind === "page"
      ? extractMetadata(content.markup, url, now)
      : { media: content.metadata };
  const draft = mergeMetadata(metadata, url);
  const [oembed, listing] = await Promise.all([
    content.kind === "page" ? followOembed(content.markup, draft.fields, url, follower) : null,
    follower.listFormats(draft.media),
  ]);
  const { fields } = oembed === null ? draft : mergeMetadata({ ...metadata, oembed }, url);
  return combine(fields, listing);
}

/** Asks the site's oEmbed service only for what the page left out. */
async function followOembed(
  markup: Markup,
  { title, uploader, duration, embed, thumbnails }: Fields,
  url: URL,
  follower: LinkFetcher,
): Promise<Metadata | null> {
  const isComplete = [title, uploader, duration, embed, thumbnails[0] ?? null].every(
    (value) => value !== null,
  );
  const link = linksOf(markup, "alternate").find((each) =>
    /^(?:application\/json|text\/xml)\+oembed\b/i.test(each.get("type")?.trim() ?? ""),
  );
  const address = tryParseUrl(link?.get("href"), tryParseUrl(markup.base, url) ?? url);
  return isComplete || address === null ? null : follower.readOembed(address);
}

/** The page's word, and what its manifests add to it. */
function combine(fields: Fields, listing: FormatListing): Description {
  const sources = { ...fields.sources };
  if (fields.duration === null && listing.duration !== null) sources["duration"] = "manifest";
  if (fields.live_status === null && listing.live_status !== null) {
    sources["live_status"] = "manifest";
  }
  if (listing.isRead && listing.formats.length > 0) sources["formats"] = "manifest";
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
