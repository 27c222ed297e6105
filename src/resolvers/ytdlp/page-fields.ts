import { withApproximateSize } from "../../model/format-sizes.ts";
import { audioDecision, bestFormats } from "../../model/format-ranking.ts";
import type { Entry, SiteVideo, StatedChapter } from "../../model/entry.ts";
import type { DownloadFormat, PageInfo, Thumbnail } from "../../model/page-info.ts";
import { listChapters } from "../chapters.ts";
import { parseDate } from "../../parsers/date.ts";
import { parseDuration } from "../../parsers/quantities.ts";
import { parseTags, parseLine, parseParagraphs } from "../../parsers/text.ts";
import { isSamePage, tryParseUrl } from "../../parsers/url.ts";
import { listEntries } from "../entries.ts";
import { type ListedFormat, languageOf, withLanguageRoles } from "./formats.ts";
import { asAmount, asCount, asObject, asList, asText, type JsonObject } from "../../parsers/json-values.ts";
import { readSubtitles } from "./subtitles.ts";

/** What an info dict says; the resolver adds which page was asked for, when and by whom. */
export type PageFields = Omit<PageInfo, "url" | "resolver" | "fetched_at" | "formats"> & {
  formats: DownloadFormat[];
};

const liveStatuses = ["is_live", "is_upcoming", "was_live", "not_live"] as const;
const maxThumbnails = 50;

/** The extractors for any page: they state the host as uploader and `Last-Modified` as upload time. */
const genericExtractors: ReadonlySet<string> = new Set(["generic", "html5"]);

/** Whether the generic extractor takes a response for a file only because it is no web page. */
export function isGuess(info: JsonObject, url: URL): boolean {
  const file = tryParseUrl(asText(info["url"]), url);
  const isListed = "formats" in info;
  return info["extractor"] === "generic" && !isListed && file !== null && isSamePage(file, url);
}

/**
 * Returns the video that an info dict is about: the dict itself, or the only entry of a playlist if it is a
 * video on the playlist's own page. `null`: it is a playlist.
 */
export function videoOf(info: JsonObject): JsonObject | null {
  if (!isPlaylist(info)) return info;
  const entries = asList(info["entries"]);
  const [only] = entries;
  const entry = asObject(only);
  return entries.length === 1 && !isLink(entry) && !isPlaylist(entry) ? entry : null;
}

/** Reads what yt-dlp knows of a video with these formats, the best first. `url`: the requested one. */
export function readVideo(info: JsonObject, formats: readonly ListedFormat[], url: URL): PageFields {
  const isGeneric = genericExtractors.has(asText(info["extractor"]) ?? "");
  const webpageUrl = tryParseUrl(asText(info["webpage_url"]), url);
  const duration = parseSeconds(info["duration"]);
  // The generic extractors take the name of a file.
  const id = isGeneric ? null : asText(info["id"])?.slice(0, 200);
  const live_status = liveStatusOf(info["live_status"]);
  const listed = sortFormats(withLanguageRoles(formats)).map((format) =>
    live_status === "is_live" ? format : withApproximateSize(format, duration),
  );
  const isAudio = listed.length > 0 && listed.every(({ vcodec }) => vcodec === "none");
  const chapters = listChapters(asList(info["chapters"]).map(readChapter), duration);
  const automatic = readSubtitles(info["automatic_captions"], url);
  const language = languageOf(formats);
  const series = parseLine(asText(info["series"]));
  const season_number = asCount(info["season_number"], 0);
  const episode_number = asCount(info["episode_number"], 0);
  const fields = withSources(
    {
      ...unknownFields(),
      ...(id && { video_id: id }),
      ...(series && { series }),
      ...(season_number !== null && { season_number }),
      ...(episode_number !== null && { episode_number }),
      ...(chapters.length > 0 && { chapters }),
      ...(Object.keys(automatic).length > 0 && { automatic_captions: automatic }),
      webpage_url: webpageUrl?.href ?? null,
      media_type: isAudio ? "audio" : "video",
      title: parseLine(asText("fulltitle" in info ? info["fulltitle"] : info["title"])),
      description: parseParagraphs(asText(info["description"])),
      language,
      duration,
      uploaded_at: isGeneric ? null : uploadTimeOf(info),
      uploader: isGeneric ? null : parseLine(asText(info["uploader"]) || asText(info["channel"])),
      uploader_url: urlOf(info["uploader_url"], url) ?? urlOf(info["channel_url"], url),
      thumbnails: readThumbnails(info, webpageUrl ?? url),
      view_count: asCount(info["view_count"], 0),
      like_count: asCount(info["like_count"], 0),
      live_status,
      age_limit: ageOf(info["age_limit"]),
      tags: parseTags(asList(info["tags"]).filter((tag) => typeof tag === "string")),
      formats: listed,
      subtitles: readSubtitles(info["subtitles"], url),
    },
    url,
  );
  if (audioDecision({ formats: listed, language }) === null) return fields;
  // Roles are of a manifest that was read; yt-dlp itself knows none.
  const isByManifest = listed.some(({ audio_role, roles }) => audio_role === "original" && roles !== undefined);
  return { ...fields, sources: { ...fields.sources, audio: isByManifest ? "manifest" : "yt-dlp" } };
}

/** Reads what yt-dlp knows of a playlist, with its entries after the first `start`. `url`: the requested one. */
export function readPlaylist(info: JsonObject, url: URL, start: number): PageFields {
  const webpageUrl = tryParseUrl(asText(info["webpage_url"]), url);
  const uploader = asText(info["uploader"]) || asText(info["channel"]);
  const slice = {
    start,
    listed: asList(info["entries"]).map((entry) => readEntry(asObject(entry), webpageUrl ?? url)),
    hasMore: info["_has_more"] === true,
    count: asCount(info["_count"], 0),
  };
  return withSources(
    {
      ...unknownFields(),
      webpage_url: webpageUrl?.href ?? null,
      title: parseLine(asText(info["title"])),
      description: parseParagraphs(asText(info["description"])),
      uploader: parseLine(uploader),
      uploader_url: urlOf(info["uploader_url"], url) ?? urlOf(info["channel_url"], url),
      thumbnails: readThumbnails(info, webpageUrl ?? url),
      ...listEntries("yt-dlp", slice),
    },
    url,
  );
}

/** Returns what is known of a page on which yt-dlp finds nothing. */
export function readNothing(url: URL): PageFields {
  return withSources(unknownFields(), url);
}

type KnownFields = Omit<PageFields, "sources" | "webpage_url"> & { webpage_url: string | null };

function unknownFields(): KnownFields {
  return {
    webpage_url: null,
    site_name: null,
    media_type: "none",
    title: null,
    description: null,
    language: null,
    duration: null,
    uploaded_at: null,
    uploader: null,
    uploader_url: null,
    thumbnails: [],
    embed: null,
    view_count: null,
    like_count: null,
    live_status: null,
    age_limit: null,
    tags: [],
    formats: [],
    subtitles: {},
  };
}

/** Names yt-dlp as the source of every field with a value. */
function withSources({ media_type, ...fields }: KnownFields, url: URL): PageFields {
  const known = Object.entries(fields).filter(
    ([, value]) => value !== null && (typeof value !== "object" || Object.keys(value).length > 0),
  );
  return {
    ...fields,
    webpage_url: fields.webpage_url ?? url.href,
    media_type,
    sources: Object.fromEntries(known.map(([field]) => [field, "yt-dlp" as const])),
  };
}

/** Whether the dict only leads to another page. */
function isLink({ _type }: JsonObject): boolean {
  return _type === "url" || _type === "url_transparent";
}

function isPlaylist({ _type }: JsonObject): boolean {
  return _type === "playlist" || _type === "multi_video" || _type === "compat_list";
}

/** Best first; of audio only, variants for few come last, so that no task gets one unasked. */
function sortFormats(formats: readonly ListedFormat[]): DownloadFormat[] {
  const isForFew = ({ vcodec, languagePreference }: ListedFormat) =>
    Number(vcodec === "none" && languagePreference < -1);
  return bestFormats(formats)
    .toSorted((a, b) => isForFew(a) - isForFew(b))
    .map(({ languagePreference: _preference, isDub: _isDub, ...format }) => format);
}

function uploadTimeOf({ timestamp, upload_date }: JsonObject): string | null {
  const seconds = asAmount(timestamp);
  return parseDate(seconds === null ? null : `${Math.floor(seconds)}`) ?? parseDate(asText(upload_date));
}

function parseSeconds(duration: unknown): number | null {
  const seconds = asAmount(duration);
  return seconds === null ? null : parseDuration(seconds.toFixed(3));
}

function liveStatusOf(status: unknown): PageInfo["live_status"] {
  if (status === "post_live") return "was_live";
  return liveStatuses.find((each) => each === status) ?? null;
}

function ageOf(limit: unknown): number | null {
  const years = asCount(limit);
  return years === null || years > 99 ? null : years;
}

function urlOf(value: unknown, base: URL): string | null {
  return tryParseUrl(asText(value), base)?.href ?? null;
}

/** yt-dlp lists the best last. */
function readThumbnails(info: JsonObject, base: URL): Thumbnail[] {
  const listed = asList(info["thumbnails"]).slice(-maxThumbnails).toReversed().map(asObject);
  const thumbnails = listed.length > 0 ? listed : [{ url: info["thumbnail"] } as JsonObject];
  return thumbnails.flatMap(({ url, width, height }) => {
    const href = urlOf(url, base);
    return href === null ? [] : [{ url: href, width: asCount(width), height: asCount(height) }];
  });
}

function readChapter(chapter: unknown): StatedChapter {
  const { start_time, end_time, title } = asObject(chapter);
  return { start: start_time === 0 ? 0 : asAmount(start_time), end: asAmount(end_time), title: asText(title) };
}

/** An entry that is a video on the playlist's own page leads to its medium. */
function readEntry(entry: JsonObject, playlistUrl: URL): Entry | null {
  const page = isLink(entry) ? null : tryParseUrl(asText(entry["webpage_url"]), playlistUrl);
  const isOwnPage = page !== null && !isSamePage(page, playlistUrl);
  const url = isOwnPage ? page : tryParseUrl(asText(entry["url"]), playlistUrl);
  if (url === null) return null;
  const video = siteVideoOf(entry);
  return {
    url: url.href,
    title: parseLine(asText(entry["title"])),
    duration: parseSeconds(entry["duration"]),
    thumbnail: urlOf(entry["thumbnail"], playlistUrl),
    uploaded_at: uploadTimeOf(entry),
    ...(video !== undefined && { video }),
  };
}

function siteVideoOf(entry: JsonObject): SiteVideo | undefined {
  const [extractor, id] = [asText(entry["ie_key"]), asText(entry["id"])];
  if (!extractor || !id || genericExtractors.has(extractor.toLowerCase())) return undefined;
  return { extractor: extractor.slice(0, 200), id: id.slice(0, 200) };
}
