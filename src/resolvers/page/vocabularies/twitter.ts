import { parsePixels } from "../../../parsers/count.ts";
import { parseLine, parseParagraphs } from "../../../parsers/text.ts";
import { parseUrls, tryParseUrl } from "../../../parsers/url.ts";
import type { Metas } from "../markup/markup.ts";
import { createResource, type Metadata, type Resource, thumbnailsAt } from "../metadata.ts";

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
