import { createSubtitles } from "../../../manifests/manifest.ts";
import type { PageInfo, Thumbnail } from "../../../model/page-info.ts";
import { parseDate } from "../../../parsers/date.ts";
import { parseKeywords, parseLine, parseParagraphs, parseLanguage } from "../../../parsers/text.ts";
import { isManifest } from "../../../parsers/media-type.ts";
import { isFrontPage, parseUrls, tryParseUrl } from "../../../parsers/url.ts";
import { isOfTrailer } from "../choice/similarity.ts";
import type { Attributes } from "../markup/attributes.ts";
import type { Markup, Metas, Player } from "../markup/markup.ts";
import { createResource, type Metadata, type Resource, thumbnailsAt } from "../metadata.ts";
import { findPlayer, sourcesOf } from "./player-elements.ts";

/** Extracts what HTML says of the page: title, links and standard `<meta>` names. */
export function extractHead(markup: Markup, metas: Metas, base: URL): Metadata {
  return {
    webpage_url: tryParseUrl(markup.links.get("canonical")?.[0]?.get("href"), base)?.href ?? null,
    site_name: parseLine(metas.first("application-name", "apple-mobile-web-app-title")),
    title: parseLine(metas.first("title")) ?? parseLine(markup.title),
    description: parseParagraphs(metas.first("description")),
    language: languageOf(markup, metas),
    uploaded_at: parseDate(metas.first("date", "pubdate", "publish-date")),
    uploader: author(metas),
    age_limit: isAdult(metas) ? 18 : null,
    tags: parseKeywords(metas.all("keywords", "news_keywords")),
  };
}

/**
 * Extracts what the page's `<video>` or `<audio>` says of its medium, and the manifests and images that the page links to. `url` is the page's
 * own; with `isVideo` the page calls itself a video; then a muted loop or a player on a front page counts too.
 * `trailers` is what schema.org calls trailers, by `nameOfFile`.
 */
export function extractPlayerElement(
  markup: Markup,
  metas: Metas,
  base: URL,
  { url, isVideo, trailers }: { url: URL; isVideo: boolean; trailers: ReadonlySet<string> },
): Metadata {
  const titles = [markup.title ?? "", ...metas.all("og:title")];
  const takesTrailers = isOfTrailer({ titles, urls: [url] });
  const canHaveMedium =
    isVideo || !isFrontPage(url, languageOf(markup, metas) ?? parseLanguage(metas.first("og:locale")));
  const player = canHaveMedium ? findPlayer(markup, base, { isVideo, takesTrailers, trailers }) : null;
  const resources = [...manifestLinks(markup, base), ...(player === null ? [] : sourcesOf(player, base))];
  return {
    thumbnails: images(markup, metas, player, base),
    resources: resources.length > 0 ? resources : preloadedManifests(markup, base),
    subtitles: player === null ? {} : subtitles(player.tracks, base),
    chapters_url: player === null ? null : chaptersUrl(player.tracks, base),
  };
}

function languageOf({ language }: Markup, metas: Metas): string | null {
  return parseLanguage(language) ?? parseLanguage(metas.first("content-language", "language"));
}

/** Ignores the name or the domain of the site, which many sites state as author of every page. */
function author(metas: Metas): string | null {
  const name = parseLine(metas.first("author"));
  const site = metas.first("og:site_name", "application-name")?.trim().toLowerCase();
  const isDomain = /^[\w-]{1,63}(?:\.[\w-]{1,63}){0,5}\.[a-z]{2,10}\b/i.test(name ?? "");
  return isDomain || name?.toLowerCase() === site || name?.includes("://") === true ? null : name;
}

/** Whether `<meta name=rating>` has a label for adult content: Google's, or RTA of ASACP. */
function isAdult(metas: Metas): boolean {
  return metas
    .all("rating")
    .some((rating) => /^(?:adult|mature|restricted|RTA-5042-1996-1400-1577-RTA)$/i.test(rating.trim()));
}

function images(markup: Markup, metas: Metas, player: Player | null, base: URL): Thumbnail[] {
  const stated = [
    player?.attributes.get("poster"),
    markup.links.get("image_src")?.[0]?.get("href"),
    metas.first("thumbnail", "thumbnailurl"),
  ];
  return parseUrls(stated, base).flatMap((url) => thumbnailsAt(url));
}

function manifestLinks(markup: Markup, base: URL): Resource[] {
  return (markup.links.get("alternate") ?? []).flatMap((link) => {
    const type = link.get("type") ?? "";
    const isOfManifest = /^application\/(?:x-mpegurl|vnd\.apple\.mpegurl|dash\+xml)\b/i.test(type.trim());
    const url = isOfManifest ? tryParseUrl(link.get("href"), base) : null;
    return url === null ? [] : [createResource(url, "media", { type })];
  });
}

/** The manifests that a page has the browser fetch for its player. */
function preloadedManifests(markup: Markup, base: URL): Resource[] {
  return (markup.links.get("preload") ?? []).flatMap((link) => {
    const url = tryParseUrl(link.get("href"), base);
    return url !== null && isManifest(null, url) ? [createResource(url, "media")] : [];
  });
}

const subtitleKinds = new Set(["subtitles", "captions"]);

/** Returns the subtitles of `<track>` elements by language, `und` if none is stated (BCP 47). */
function subtitles(tracks: readonly Attributes[], base: URL): PageInfo["subtitles"] {
  const found = createSubtitles();
  for (const track of tracks) {
    const url = tryParseUrl(track.get("src"), base);
    const kind = (track.get("kind") ?? "subtitles").toLowerCase();
    if (url === null || !subtitleKinds.has(kind)) continue;
    const ext = /\.([a-z0-9]{2,5})$/i.exec(url.pathname)?.[1]?.toLowerCase() ?? "vtt";
    const role = kind === "captions" ? kind : "subtitles";
    found.add(parseLanguage(track.get("srclang")), { url: url.href, ext, name: parseLine(track.get("label")), role });
  }
  return found.record();
}

/** Returns the URL of the first `<track>` of chapters, which is WebVTT. */
function chaptersUrl(tracks: readonly Attributes[], base: URL): string | null {
  const chapters = tracks.find((track) => track.get("kind")?.toLowerCase() === "chapters");
  return tryParseUrl(chapters?.get("src"), base)?.href ?? null;
}
