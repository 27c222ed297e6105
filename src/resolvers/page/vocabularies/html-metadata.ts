import type { Thumbnail } from "../../../page-info.ts";
import { isFrontPage, tryParseUrl } from "../../../parsers/url.ts";
import type { Attributes } from "../markup/attributes.ts";
import { type Metadata, type Resource, resource } from "../metadata.ts";
import { readPixels } from "../../../parsers/count.ts";
import { readDate } from "../../../parsers/date.ts";
import { readLanguage } from "../../../parsers/language.ts";
import type { Markup, Player } from "../markup/markup.ts";
import type { Metas } from "../markup/metas.ts";
import { readKeywords } from "../../../parsers/tags.ts";
import { readLine, readParagraphs } from "../../../parsers/text.ts";
import { readTracks } from "./tracks.ts";

/**
 * What HTML itself states: title, links, standard `<meta>` names, `<video>` and `<audio>`. `isVideo`: the
 * page calls itself one, so that also a silent loop, or a player on a front page, is its medium.
 */
export function extractHtml(markup: Markup, metas: Metas, base: URL, isVideo: boolean): Metadata {
  const canonical = linksOf(markup, "canonical")[0]?.get("href");
  const address = tryParseUrl(canonical, base);
  const isShowcase = !isVideo && isFrontPage(address ?? base);
  const player = isShowcase ? null : firstPlayer(markup, base, isVideo);
  return {
    webpage_url: address?.href ?? null,
    site_name: readLine(metas.first("application-name", "apple-mobile-web-app-title")),
    title: readLine(metas.first("title")) ?? readLine(markup.title),
    description: readParagraphs(metas.first("description")),
    language:
      readLanguage(markup.language) ?? readLanguage(metas.first("content-language", "language")),
    uploaded_at: readDate(metas.first("date", "pubdate", "publish-date")),
    uploader: author(metas),
    age_limit: isAdult(metas) ? 18 : null,
    thumbnails: images(markup, metas, player, base),
    tags: readKeywords(metas.all("keywords", "news_keywords")),
    resources: [
      ...manifestLinks(markup, base),
      ...(player === null ? [] : sourcesOf(player, base)),
    ],
    subtitles: player === null ? {} : readTracks(player.tracks, base),
  };
}

/** Links with this relation, in page order. */
export function linksOf(markup: Markup, relation: string): Attributes[] {
  return markup.links.filter((link) =>
    (link.get("rel") ?? "").toLowerCase().split(/\s+/).includes(relation),
  );
}

/** Many sites name themselves, or their domain, as author of every page; that tells nothing. */
function author(metas: Metas): string | null {
  const name = readLine(metas.first("author"));
  const site = metas.first("og:site_name", "application-name")?.trim().toLowerCase();
  const isDomain = /^[\w-]{1,63}(?:\.[\w-]{1,63}){0,5}\.[a-z]{2,10}\b/i.test(name ?? "");
  return isDomain || name?.toLowerCase() === site || name?.includes("://") === true ? null : name;
}

/** The labels of the voluntary schemes: `rating` by Google, RTA by ASACP. */
function isAdult(metas: Metas): boolean {
  return metas
    .all("rating")
    .some((rating) =>
      /^(?:adult|mature|restricted|RTA-5042-1996-1400-1577-RTA)$/i.test(rating.trim()),
    );
}

function images(markup: Markup, metas: Metas, player: Player | null, base: URL): Thumbnail[] {
  return [
    player?.attributes.get("poster"),
    linksOf(markup, "image_src")[0]?.get("href"),
    metas.first("thumbnail", "thumbnailurl"),
  ].flatMap((address) => {
    const url = tryParseUrl(address, base);
    return url === null ? [] : [{ url: url.href, width: null, height: null }];
  });
}

/** The first player whose medium can be fetched: `blob:` and scripted ones cannot. */
function firstPlayer({ players }: Markup, base: URL, takesLoops: boolean): Player | null {
  const able = players.filter((player) => sourcesOf(player, base).length > 0);
  return able.find((player) => takesLoops || !isDecoration(player)) ?? null;
}

/** Plays by itself, silently, for ever and without controls: a moving picture of the page's design. */
function isDecoration({ attributes }: Player): boolean {
  const loops = ["autoplay", "loop", "muted"].every((name) => attributes.has(name));
  return loops && !attributes.has("controls");
}

function sourcesOf({ kind, attributes, sources }: Player, base: URL): Resource[] {
  return [attributes, ...sources].flatMap((source) => {
    const url = tryParseUrl(source.get("src"), base);
    if (url === null) return [];
    const height = readPixels(source.get("res") ?? source.get("label")?.replace(/p$/, ""));
    const type = source.get("type") ?? null;
    return [resource(url, "media", { type, fallback: kind, height })];
  });
}

function manifestLinks(markup: Markup, base: URL): Resource[] {
  return linksOf(markup, "alternate").flatMap((link) => {
    const type = link.get("type") ?? "";
    const url = tryParseUrl(link.get("href"), base);
    const isManifest = /^application\/(?:x-mpegurl|vnd\.apple\.mpegurl|dash\+xml)\b/i.test(
      type.trim(),
    );
    return url === null || !isManifest ? [] : [resource(url, "media", { type })];
  });
}
