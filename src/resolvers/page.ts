import type { HttpClient } from "../net/client.ts";
import { PageInfo } from "../page-info.ts";
import { createTimeSlices, type Steps, type TimeSlices } from "../parsers/steps.ts";
import { tryParseUrl } from "../parsers/url.ts";
import { type Content, readContent } from "./page/content.ts";
import { extractMetadata, type PageMetadata } from "./page/extract-metadata.ts";
import { bestFormats } from "./page/formats.ts";
import { createLinkFetcher, type FormatListing, type LinkFetcher } from "./page/link-fetcher.ts";
import type { Markup } from "./page/markup/markup.ts";
import { type Fields, mergeMetadata, type Merged } from "./page/merge.ts";
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
const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/**
 * Creates a resolver that reads what a page states in the public vocabularies: JSON-LD and microdata
 * (schema.org), Open Graph, Twitter Cards, oEmbed, HTML, HLS and DASH. No rule is for a certain site.
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
      const response = await client.get(url, { signal, maxBytes: pageMaxBytes, accept });
      const content = await readContent(response, slices, signal);
      const linkFetcher = createLinkFetcher({ client, slices, signal, timeoutMs: linkTimeoutMs });
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

async function describe(
  content: Content,
  url: URL,
  { linkFetcher, slices, signal, now }: DescribeDeps,
): Promise<Description> {
  if (content.kind === "manifest") {
    const formats = bestFormats(content.manifest.formats);
    const media_type = formats[0]?.vcodec === "none" ? "audio" : "video";
    const { fields } = mergeMetadata({}, url);
    const listing = { ...content.manifest, formats, hasManifest: true };
    return addListing({ ...fields, media_type }, listing);
  }
  const { metadata, draft } = await slices.run(createDraft(content, url, now), signal);
  const [oembed, listing] = await Promise.all([
    content.kind === "page" ? fetchOembed(content.markup, draft.fields, url, linkFetcher) : null,
    linkFetcher.listFormats(draft.media),
  ]);
  const { fields } = oembed === null ? draft : mergeMetadata({ ...metadata, oembed }, url);
  return addListing(fields, listing);
}

interface Draft {
  metadata: PageMetadata;
  draft: Merged;
}

/** Extracts and merges what the response itself states. */
function* createDraft(
  content: Exclude<Content, { kind: "manifest" }>,
  url: URL,
  now: Date,
): Steps<Draft> {
  const metadata =
    content.kind === "page"
      ? yield* extractMetadata(content.markup, url, now)
      : { media: content.metadata };
  yield;
  return { metadata, draft: mergeMetadata(metadata, url) };
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
