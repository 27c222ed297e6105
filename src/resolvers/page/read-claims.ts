import type { Vocabulary } from "../../page-info.ts";
import { isFrontPage, readAddress } from "../../values/address.ts";
import { chooseMedium, type PageIdentity } from "./vocabularies/choose-medium.ts";
import type { Claims } from "./claims.ts";
import { claimHtml } from "./vocabularies/html-claims.ts";
import { readJsonLd } from "./vocabularies/json-ld.ts";
import type { Markup } from "./markup/markup.ts";
import { indexMetas } from "./markup/metas.ts";
import { claimOpenGraph } from "./vocabularies/open-graph.ts";
import { claimPage } from "./vocabularies/schema-page.ts";
import { claimMedium } from "./vocabularies/schema-video.ts";
import type { Thing } from "./vocabularies/thing.ts";
import { claimTwitter } from "./vocabularies/twitter.ts";

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
export type Source = keyof typeof vocabularyOf;

export type PageClaims = Partial<Record<Source, Claims>>;

/** What each of the page's vocabularies states. `url`: the page's own address. */
export function readClaims(markup: Markup, url: URL, now: Date): PageClaims {
  const base = readAddress(markup.base, url) ?? url;
  const metas = indexMetas(markup);
  const og = claimOpenGraph(metas, base);
  const isVideo = og.media_type === "video" || (og.resources ?? []).length > 0;
  const html = claimHtml(markup, metas, base, isVideo);
  const twitter = claimTwitter(metas, base);
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
  html: Claims,
  og: Claims,
  twitter: Claims,
  types: string[],
): PageIdentity {
  const addresses = [html.webpage_url, og.webpage_url, twitter.webpage_url]
    .flatMap((address) => readAddress(address, url) ?? [])
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
): PageClaims {
  const { medium, isPart, pages } = chooseMedium(things, identity, base);
  const claims: PageClaims = {};
  claims[`${vocabulary} page`] = claimPage(pages, base);
  const key: Source = isPart ? `${vocabulary} part` : vocabulary;
  if (medium !== null) claims[key] = claimMedium(medium, base, now);
  return claims;
}
