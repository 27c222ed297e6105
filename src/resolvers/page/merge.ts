import type { PageInfo, Thumbnail, Vocabulary } from "../../model/page-info.ts";
import { findEmbed, findMedia, type Medium } from "./formats.ts";
import type { Metadata } from "./metadata.ts";

/**
 * The sources of metadata, each with its vocabulary. schema.org has three: the medium that the page is
 * about, a medium that is only a part of the page (`… part`), and the page itself (`… page`). `player`
 * is what players are set up with, `media` a media file at the page's URL, `feed`, `m3u` and `pls` a list of media.
 */
const vocabularyOf = {
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
  feed: "feed",
  m3u: "m3u",
  pls: "pls",
  media: "media",
} as const satisfies Record<string, Vocabulary>;
export type MetadataSource = keyof typeof vocabularyOf;

export type PageMetadata = Partial<Record<MetadataSource, Metadata>>;

/** The fields whose value is that of a single source. */
type Field = Exclude<keyof Metadata, "resources" | "media_type" | "chapters_url">;

const medium = ["json-ld", "microdata"] as const;
const part = ["json-ld part", "microdata part"] as const;
const page = ["json-ld page", "microdata page"] as const;

/**
 * The order of precedence of the sources for each field. The reasons where they are not obvious:
 * - schema.org's medium is first: it is the most specific. Of a medium that is part of an article, only
 *   duration, date and player are early: title, text and image of an article's VideoObject are often an
 *   agency's, or a number.
 * - `<link rel=canonical>` precedes `og:url`: some sites use other URLs for sharing.
 * - `<html lang>` precedes `og:locale`, which is often a framework's default.
 * - The medium's own date precedes `article:published_time` (og), which may be years later.
 * - The publisher names the site, not the uploader.
 * - A player's data is last: which of several media is the page's is known by similarity only.
 */
const precedence: Readonly<Record<Field, readonly MetadataSource[]>> = {
  webpage_url: ["html", "og", "twitter", "feed"],
  site_name: ["og", "html", ...page, "oembed", ...medium],
  title: [...medium, "og", "twitter", ...page, "oembed", "html", ...part, "media", "feed", "m3u"],
  description: [...medium, "og", "twitter", "html", ...page, ...part, "feed"],
  language: ["html", "og", ...medium, ...page, "feed"],
  duration: [...medium, ...part, "og", "oembed", "player"],
  uploaded_at: [...medium, ...part, "og", ...page, "html"],
  uploader: [...medium, "oembed", ...page, ...part, "og", "html", "feed"],
  uploader_url: [...medium, "oembed", "og"],
  view_count: [...medium, ...part],
  like_count: [...medium, ...part],
  live_status: [...medium, ...part],
  age_limit: [...medium, ...part, "og", "html"],
  series: [...medium, ...page, ...part],
  season_number: [...medium, ...page, ...part],
  episode_number: [...medium, ...page, ...part],
  thumbnails: [...medium, "og", "twitter", ...page, "oembed", ...part, "html", "player", "feed"],
  tags: [...medium, "og", ...page, "html"],
  subtitles: ["html", "player"],
  chapters: [...medium, ...part],
  list: [...page, "html", "player"],
  parts: medium,
};

/** The order of precedence for players and media; each source keeps its own order. */
const resourceOrder: readonly MetadataSource[] = [
  ...medium,
  ...part,
  "og",
  "twitter",
  "oembed",
  "html",
  "player",
  "media",
];
const mediaTypeOrder: readonly MetadataSource[] = [...medium, "og", ...part, "oembed"];

const maxThumbnails = 50;

/** The fields of PageInfo that come from metadata. */
export type Fields = Omit<PageInfo, "url" | "formats" | "resolver" | "fetched_at">;

export interface Merged {
  fields: Fields;
  /** The files and manifests to list the formats of. */
  media: Medium[];
}

/**
 * Chooses one value for each field and records its vocabulary in `sources`. `url` is the page's final
 * URL, and its `webpage_url` if no canonical one is stated.
 */
export function mergeMetadata(metadata: PageMetadata, url: URL): Merged {
  const sources: PageInfo["sources"] = {};

  /** Returns the first value that is stated, and records where it is from. */
  function first<F extends Field>(field: F, name: string = field): NonNullable<Metadata[F]> | null {
    for (const source of precedence[field]) {
      const value = metadata[source]?.[field];
      if (value === undefined || value === null || isEmpty(value)) continue;
      sources[name] = vocabularyOf[source];
      return value;
    }
    return null;
  }

  const webpage_url = first("webpage_url") ?? url.href;
  const resources = resourceOrder.flatMap((source) =>
    (metadata[source]?.resources ?? []).map((each) => ({ ...each, vocabulary: vocabularyOf[source] })),
  );
  const [series, season_number, episode_number] = [first("series"), first("season_number"), first("episode_number")];
  const media = findMedia(resources);
  const embed = findEmbed(resources, [url, URL.parse(webpage_url)]);
  if (embed !== null) sources["embed"] = embed.vocabulary;
  if (media[0] !== undefined) sources["formats"] = media[0].vocabulary;
  const [duration, chapters] = [first("duration"), first("chapters")];
  const kind = mediaTypeOrder.map((source) => metadata[source]?.media_type).find(isMedium);
  const isPlayed = media.length > 0 || embed !== null;
  const isMediumItself = isPlayed || kind !== undefined || duration !== null;
  // What a page lists beside its own medium is not what the page is.
  const list = (isPlayed ? null : first("parts", "entries")) ?? (isMediumItself ? null : first("list", "entries"));
  const fields: Fields = {
    webpage_url,
    site_name: first("site_name"),
    media_type: kind ?? media[0]?.kind ?? (embed === null && duration === null ? "none" : "video"),
    title: first("title"),
    description: first("description"),
    language: first("language"),
    duration,
    uploaded_at: first("uploaded_at"),
    uploader: first("uploader"),
    uploader_url: first("uploader_url"),
    thumbnails: allThumbnails(metadata, sources),
    embed: embed === null ? null : { url: embed.url.href, width: embed.width, height: embed.height },
    view_count: first("view_count"),
    like_count: first("like_count"),
    live_status: first("live_status"),
    age_limit: first("age_limit"),
    tags: first("tags") ?? [],
    ...(series !== null && { series }),
    ...(season_number !== null && { season_number }),
    ...(episode_number !== null && { episode_number }),
    subtitles: first("subtitles") ?? {},
    ...(chapters !== null && { chapters }),
    ...list,
    sources,
  };
  return { fields, media };
}

function allThumbnails(metadata: PageMetadata, sources: PageInfo["sources"]): Thumbnail[] {
  const thumbnails = new Map<string, Thumbnail>();
  for (const source of precedence.thumbnails) {
    for (const thumbnail of widestFirst(metadata[source]?.thumbnails ?? [])) {
      if (thumbnails.size === maxThumbnails) return [...thumbnails.values()];
      sources["thumbnails"] ??= vocabularyOf[source];
      if (!thumbnails.has(thumbnail.url)) thumbnails.set(thumbnail.url, thumbnail);
    }
  }
  return [...thumbnails.values()];
}

/** Sorts images among those whose widths are stated; the others keep their places, as pages list their best one first. */
function widestFirst(images: readonly Thumbnail[]): Thumbnail[] {
  const widthOf = (image: Thumbnail) => image.width ?? 0;
  const sorted = images.filter((image) => widthOf(image) > 0).toSorted((a, b) => widthOf(b) - widthOf(a));
  // Pages may state a hundred thousand, of which `shift` would move the rest each time.
  const widest = sorted.values();
  return images.map((image) => (widthOf(image) > 0 ? (widest.next().value ?? image) : image));
}

function isMedium(type: Metadata["media_type"]): type is "video" | "audio" {
  return type === "video" || type === "audio";
}

function isEmpty(value: object | string | number): boolean {
  return typeof value === "object" && Object.keys(value).length === 0;
}
