import type { PageInfo, Thumbnail } from "../../../model/page-info.ts";
import { parseDuration, parsePixels } from "../../../parsers/quantities.ts";
import { parseDate } from "../../../parsers/date.ts";
import { parseTags, parseLine, parseParagraphs, parseLanguage } from "../../../parsers/text.ts";
import { parseUrls, tryParseUrl } from "../../../parsers/url.ts";
import type { Metas } from "../markup/markup.ts";
import { createResource, type Metadata, type Resource, thumbnailsAt } from "../metadata.ts";

/** Extracts Open Graph (ogp.me) with its `video.*` and `article` types, and Facebook's own properties. */
export function extractOpenGraph(metas: Metas, base: URL): Metadata {
  const author = metas.first("article:author");
  const authorUrl = tryParseUrl(author?.includes("://") === true ? author : null, base);
  return {
    webpage_url: tryParseUrl(metas.first("og:url"), base)?.href ?? null,
    site_name: parseLine(metas.first("og:site_name")),
    title: parseLine(metas.first("og:title")),
    description: parseParagraphs(metas.first("og:description")),
    language: parseLanguage(metas.first("og:locale")),
    duration: parseDuration(metas.first("og:video:duration", "video:duration", "music:duration")),
    uploaded_at: parseDate(metas.first("video:release_date", "og:video:release_date", "article:published_time")),
    uploader: authorUrl === null ? parseLine(author) : null,
    uploader_url: authorUrl?.href ?? null,
    age_limit: ageLimit(metas.first("og:restrictions:age")),
    thumbnails: images(metas, base),
    tags: parseTags(metas.all("video:tag", "og:video:tag", "article:tag")),
    resources: [...media("video", metas, base), ...media("audio", metas, base)],
    media_type: mediaType(metas.all("og:type")),
  };
}

const maxTypeLength = 100;

/**
 * Returns what `og:type` states the page is about; null if it may contain a video (`article`, `website`,
 * …). A site's own types, like `shop:lamp`, are judged by their last word.
 */
function mediaType(types: string[]): PageInfo["media_type"] | null {
  const words = types.map((type) => type.slice(0, maxTypeLength).trim().toLowerCase());
  if (words.some((word) => /^(?:video|movie|tv_show)\b|:(?:video|movie|clip)$/.test(word))) return "video";
  if (words.some((word) => /^(?:music|song|album|audio)\b|:(?:sound|song|track|audio)$/.test(word))) {
    return "audio";
  }
  return words.some((word) => word.includes(":")) ? "none" : null;
}

function ageLimit(stated: string | null): number | null {
  const years = Number(/^(\d{1,2})\+?$/.exec(stated?.trim() ?? "")?.[1] ?? 0);
  return years > 0 ? years : null;
}

/** Reads `og:image` and its structured properties. */
function images(metas: Metas, base: URL): Thumbnail[] {
  return structures("image", metas).flatMap(({ root, secure, properties }) => {
    const url = tryParseUrl(root, base) ?? tryParseUrl(secure, base);
    const width = parsePixels(properties.get(":width"));
    const height = parsePixels(properties.get(":height"));
    return thumbnailsAt(url, width, height);
  });
}

function media(kind: "video" | "audio", metas: Metas, base: URL): Resource[] {
  return structures(kind, metas).flatMap(({ root, secure, properties }) => {
    const type = properties.get(":type") ?? null;
    const stated = {
      type,
      width: parsePixels(properties.get(":width")),
      height: parsePixels(properties.get(":height")),
      fallback: type?.toLowerCase().startsWith(`${kind}/`) === true ? kind : null,
    };
    return parseUrls([secure, root], base).map((url) => createResource(url, "either", stated));
  });
}

/** Further ones are ignored; more than a record lists. */
const maxStructures = 200;

interface Structure {
  root: string | null;
  secure: string | null;
  properties: Map<string, string>;
}

/**
 * Groups structured properties (ogp.me): an object starts with its root property or `url`, and the
 * properties after it describe it. Some pages state properties before the first root too.
 */
function structures(kind: "image" | "video" | "audio", metas: Metas): Structure[] {
  const found: Structure[] = [];
  for (const { name, content } of metas.under(`og:${kind}`)) {
    if (name !== "" && !name.startsWith(":")) continue;
    const key = name === "" || name === ":url" ? "root" : name === ":secure_url" ? "secure" : null;
    let current = found.at(-1);
    const isTaken = key !== null && (current?.[key] ?? content) !== content;
    if (current === undefined || isTaken) {
      if (found.length === maxStructures) break;
      current = { root: null, secure: null, properties: new Map() };
      found.push(current);
    }
    if (key !== null) current[key] = content;
    else if (!current.properties.has(name)) current.properties.set(name, content);
  }
  return found;
}

/** Extracts Twitter Cards; its resources are the player card's stream and player. */
export function extractTwitter(metas: Metas, base: URL): Metadata {
  const image = tryParseUrl(metas.first("twitter:image", "twitter:image:src", "twitter:image0"), base);
  return {
    webpage_url: tryParseUrl(metas.first("twitter:url"), base)?.href ?? null,
    title: parseLine(metas.first("twitter:title")),
    description: parseParagraphs(metas.first("twitter:description")),
    thumbnails: thumbnailsAt(image),
    resources: [...streams(metas, base), ...players(metas, base)],
  };
}

const maxPlayers = 50;

function players(metas: Metas, base: URL): Resource[] {
  const width = parsePixels(metas.first("twitter:player:width"));
  const height = parsePixels(metas.first("twitter:player:height"));
  const stated = metas.all("twitter:player", "twitter:player:url").slice(0, maxPlayers);
  const urls = parseUrls(stated, base);
  return urls.map((url) => createResource(url, "player", { width, height }));
}

function streams(metas: Metas, base: URL): Resource[] {
  const type = metas.first("twitter:player:stream:content_type");
  const fallback = type?.trim().startsWith("audio/") === true ? "audio" : "video";
  const url = tryParseUrl(metas.first("twitter:player:stream"), base);
  return url === null ? [] : [createResource(url, "media", { type, fallback: type === null ? null : fallback })];
}
