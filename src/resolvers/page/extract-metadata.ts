import type { Vocabulary } from "../../model/page-info.ts";
import type { Steps } from "../../parsers/steps.ts";
import { isFrontPage, parseUrls, tryParseUrl } from "../../parsers/url.ts";
import type { Markup } from "./markup/markup.ts";
import { indexMetas } from "./markup/metas.ts";
import type { Metadata } from "./metadata.ts";
import type { PageIdentity } from "./choice/candidate.ts";
import { chooseThing } from "./vocabularies/choose-thing.ts";
import { extractHtml } from "./vocabularies/html-metadata.ts";
import { parseJsonLd } from "./vocabularies/json-ld.ts";
import { extractOpenGraph } from "./vocabularies/open-graph.ts";
import { extractMedium, extractPage } from "./vocabularies/schema-org.ts";
import type { Thing } from "./markup/thing.ts";
import { extractTwitter } from "./vocabularies/twitter.ts";

/**
 * The sources of metadata, each with its vocabulary. schema.org has three: the medium that the page is
 * about, a medium that is only a part of the page (`… part`), and the page itself (`… page`). `player`
 * is what players are set up with, `media` a media file at the page's URL.
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
  player: "player",
  media: "media",
} as const satisfies Record<string, Vocabulary>;
export type MetadataSource = keyof typeof vocabularyOf;

export type PageMetadata = Partial<Record<MetadataSource, Metadata>>;

/** Extracts what each source states. `url` is the page's final URL. */
export function* extractMetadata(markup: Markup, url: URL, now: Date): Steps<PageMetadata> {
  const base = tryParseUrl(markup.base, url) ?? url;
  const metas = indexMetas(markup);
  yield;
  const og = extractOpenGraph(metas, base);
  yield;
  const isVideo = og.media_type === "video" || (og.resources ?? []).length > 0;
  const html = extractHtml(markup, metas, base, isVideo);
  yield;
  const twitter = extractTwitter(metas, base);
  yield;
  const identity = identify(url, html, og, twitter, metas.all("og:type"));
  // An object of another type, like `shop:lamp`: what its card plays is not the page's video.
  if (og.media_type === "none") twitter.resources = [];
  const things: Thing[] = [];
  for (const source of markup.jsonLd) {
    yield;
    for (const thing of yield* parseJsonLd(source)) things.push(thing);
  }
  return {
    html,
    og,
    twitter,
    ...(yield* extractGraph("json-ld", things, identity, base, now)),
    ...(yield* extractGraph("microdata", markup.items, identity, base, now)),
  };
}

type SchemaIdentity = PageIdentity & { isArticle: boolean };

function identify(
  url: URL,
  html: Metadata,
  og: Metadata,
  twitter: Metadata,
  types: string[],
): SchemaIdentity {
  const stated = [html.webpage_url, og.webpage_url, twitter.webpage_url];
  const pageUrls = [...parseUrls(stated, url), url];
  const players = [...(og.resources ?? []), ...(twitter.resources ?? [])].map((each) => each.url);
  return {
    urls: [url, ...pageUrls, ...players],
    titles: [og.title, twitter.title, html.title].filter((title) => typeof title === "string"),
    isArticle: types.some((type) => type.trim().toLowerCase() === "article"),
    isFrontPage: isFrontPage(pageUrls[0] ?? url),
    isMedium: og.media_type === "video" || og.media_type === "audio",
    // The audio of a page that has both is usually its article read aloud, with the title of the page.
    mediaType: og.media_type === "audio" ? "audio" : "video",
    duration: og.duration ?? null,
  };
}

function* extractGraph(
  vocabulary: "json-ld" | "microdata",
  things: readonly Thing[],
  identity: SchemaIdentity,
  base: URL,
  now: Date,
): Steps<PageMetadata> {
  const { medium, isPart, pages } = yield* chooseThing(things, identity, base);
  const metadata: PageMetadata = {};
  metadata[`${vocabulary} page`] = extractPage(pages, base);
  yield;
  const key: MetadataSource = isPart ? `${vocabulary} part` : vocabulary;
  if (medium !== null) metadata[key] = extractMedium(medium, base, now);
  return metadata;
}
