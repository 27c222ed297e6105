import type { Vocabulary } from "../../page-info.ts";
import { isFrontPage, tryParseUrl } from "../../parsers/url.ts";
import { chooseMedium, type PageIdentity } from "./vocabularies/choose-medium.ts";
import type { Metadata } from "./metadata.ts";
import { extractHtml } from "./vocabularies/html-metadata.ts";
import { readJsonLd } from "./vocabularies/json-ld.ts";
import type { Markup } from "./markup/markup.ts";
import { indexMetas } from "./markup/metas.ts";
import { extractOpenGraph } from "./vocabularies/open-graph.ts";
import { extractPage } from "./vocabularies/schema-page.ts";
import { extractMedium } from "./vocabularies/schema-video.ts";
import type { Thing } from "./vocabularies/thing.ts";
import { extractTwitter } from "./vocabularies/twitter.ts";

/**
 * Who states something: a vocabulary, in schema.org's case with what it speaks of: the medium that is
 * the page's subject (nothing added), one that is a part of the page, or the page. `media` is a file
 * that was asked for itself.
 */
export const vocabularyOf = {
  "json-ld": "json-ld",
  "json-ld part": "json-ld",
  "json-ld page": "json-ld",
  microdata: "microdata",
  "microdata part": "microdata",
  "microdata page": "microdata",
  og: "og",
  twitter: "twitter",
  oembed: "oembed",
  html: "html",
  media: "media",
} as const satisfies Record<string, Vocabulary>;
export type MetadataSource = keyof typeof vocabularyOf;

export type PageMetadata = Partial<Record<MetadataSource, Metadata>>;

/** What each of the page's vocabularies states. `url`: the page's own address. */
export function extractMetadata(markup: Markup, url: URL, now: Date): PageMetadata {
  const base = tryParseUrl(markup.base, url) ?? url;
  const metas = indexMetas(markup);
  const og = extractOpenGraph(metas, base);
  const isVideo = og.media_type === "video" || (og.resources ?? []).length > 0;
  const html = extractHtml(markup, metas, base, isVideo);
  const twitter = extractTwitter(metas, base);
  const identity = identify(url, html, og, twitter, metas.all("og:type"));
  // A type of another kind, like `shop:lamp`: its card plays something that is no video.
  if (og.media_type === "none") twitter.resources = [];
  return {
    html,
    og,
    twitter,
    ...claimGraph("json-ld", markup.jsonLd.flatMap(readJsonLd), identity, base, now),
    ...claimGraph("microdata", markup.items, identity, base, now),
  };
}

function identify(
  url: URL,
  html: Metadata,
  og: Metadata,
  twitter: Metadata,
  types: string[],
): PageIdentity {
  const addresses = [html.webpage_url, og.webpage_url, twitter.webpage_url]
    .flatMap((address) => tryParseUrl(address, url) ?? [])
    .concat(url);
  const players = [...(og.resources ?? []), ...(twitter.resources ?? [])].map((each) => each.url);
  const own = addresses[0] ?? url;
  return {
    addresses: [...addresses, ...players],
    titles: [og.title, twitter.title, html.title].filter((title) => typeof title === "string"),
    isArticle: types.some((type) => type.trim().toLowerCase() === "article"),
    isFrontPage: isFrontPage(own),
    isMedium: og.media_type === "video" || og.media_type === "audio",
  };
}

function claimGraph(
  vocabulary: "json-ld" | "microdata",
  things: readonly Thing[],
  identity: PageIdentity,
  base: URL,
  now: Date,
): PageMetadata {
  const { medium, isPart, pages } = chooseMedium(things, identity, base);
  const metadata: PageMetadata = {};
  metadata[`${vocabulary} page`] = extractPage(pages, base);
  const key: MetadataSource = isPart ? `${vocabulary} part` : vocabulary;
  if (medium !== null) metadata[key] = extractMedium(medium, base, now);
  return metadata;
}
