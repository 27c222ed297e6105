import { readAddress } from "../../../values/address.ts";
import { type Claims, type Resource, resource } from "../claims.ts";
import { readPixels } from "../../../values/count.ts";
import type { Metas } from "../markup/metas.ts";
import { readLine, readParagraphs } from "../../../values/text.ts";

/** Twitter Cards; a player card's player and stream. */
export function claimTwitter(metas: Metas, base: URL): Claims {
  const image = readAddress(
    metas.first("twitter:image", "twitter:image:src", "twitter:image0"),
    base,
  );
  return {
    webpage_url: readAddress(metas.first("twitter:url"), base)?.href ?? null,
    title: readLine(metas.first("twitter:title")),
    description: readParagraphs(metas.first("twitter:description")),
    thumbnails: image === null ? [] : [{ url: image.href, width: null, height: null }],
    resources: [...streams(metas, base), ...players(metas, base)],
  };
}

function players(metas: Metas, base: URL): Resource[] {
  const width = readPixels(metas.first("twitter:player:width"));
  const height = readPixels(metas.first("twitter:player:height"));
  return metas.all("twitter:player", "twitter:player:url").flatMap((address) => {
    const url = readAddress(address, base);
    return url === null ? [] : [resource(url, "player", { width, height })];
  });
}

function streams(metas: Metas, base: URL): Resource[] {
  const type = metas.first("twitter:player:stream:content_type");
  const fallback = type?.trim().startsWith("audio/") === true ? "audio" : "video";
  const url = readAddress(metas.first("twitter:player:stream"), base);
  return url === null
    ? []
    : [resource(url, "media", { type, fallback: type === null ? null : fallback })];
}
