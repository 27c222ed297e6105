import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Chapter, Entry, maxEntries, Subtitle } from "./entry.ts";
import { nullable, nullableCount, nullableNumber, nullableText, oneOf, optionalText, time } from "./schema.ts";

/** What a track is for (ISO/IEC 23009-1 §5.8.5.5); the others choose nothing. */
export const trackRoles = [
  "main",
  "alternate",
  "supplementary",
  "dub",
  "commentary",
  "description",
  "sign",
  "caption",
  "enhanced-audio-intelligibility",
  "emergency",
  "easyreader",
  "karaoke",
] as const;
export type TrackRole = (typeof trackRoles)[number];

/** What separate audio is to listeners. */
const audioRoles = ["original", "dub", "description", "commentary"] as const;
export type AudioRole = (typeof audioRoles)[number];

/** Vocabularies that a field's value can come from. */
const vocabularies = [
  "json-ld",
  "microdata",
  "og",
  "twitter",
  "player",
  "oembed",
  "html",
  "manifest",
  "feed",
  "m3u",
  "pls",
  "playlist",
  "media",
  "yt-dlp",
] as const;
export type Vocabulary = (typeof vocabularies)[number];

/** A picture of the video. */
export const Thumbnail = Type.Object(
  { url: Type.String(), width: nullableCount("pixels"), height: nullableCount("pixels") },
  { title: "Thumbnail" },
);
export type Thumbnail = Static<typeof Thumbnail>;

/** A player that other pages may show. */
const Embed = Type.Object(
  {
    url: Type.String({ description: "URL of a player page to put into an iframe" }),
    width: nullableCount("pixels"),
    height: nullableCount("pixels"),
  },
  { title: "Embed" },
);
type Embed = Static<typeof Embed>;

/** What a page or yt-dlp names, and the record lacks. */
const InfoWarning = Type.Object(
  {
    code: oneOf(
      ["formats_missing"],
      "`formats_missing`: a manifest cannot be read, so that its formats are not listed",
    ),
    message: Type.String({ description: "which, and why" }),
    height: nullableCount("pixels of the tallest of these formats"),
  },
  { title: "InfoWarning" },
);
export type InfoWarning = Static<typeof InfoWarning>;

/** One way to download the media; the field names are yt-dlp's. */
export const Format = Type.Object(
  {
    format_id: Type.String({ description: "unique on the page; a task's `options` can name it" }),
    url: Type.String({ description: "URL of the file, or of the variant's own manifest" }),
    manifest_url: nullableText("URL of the manifest that lists this format"),
    protocol: oneOf(["https", "m3u8", "dash"], "how it is fetched; `https`: one progressive file"),
    ext: nullableText("file name extension, without the dot"),
    mime_type: nullableText("media type as the site states it, without parameters"),
    width: nullableCount("pixels"),
    height: nullableCount("pixels"),
    fps: nullableNumber("frames per second"),
    vcodec: nullableText('RFC 6381 codec of the video; "none": no video; null: unknown'),
    acodec: nullableText('RFC 6381 codec of the audio; "none": no audio; null: unknown'),
    tbr: nullableNumber("total bit rate, kbit/s"),
    filesize: nullableCount("bytes"),
    filesize_approx: Type.Optional(
      nullableCount(
        "estimate, bytes: of this format alone, of an HLS variant with its separate audio; null: unknown, or `filesize` is known; absent in old records",
      ),
    ),
    language: nullableText("BCP 47 tag of the audio"),
    name: optionalText("of audio that nothing else tells apart from others listed"),
    roles: Type.Optional(
      Type.Array(oneOf(trackRoles, "role"), {
        description:
          "what the manifest says it is for: `main`, the programme; `description` … ; absent: it does not say",
      }),
    ),
    audio_role: Type.Optional(
      nullable(
        oneOf(
          audioRoles,
          "what separate audio has, as the site says: the original language, a `dub` in another one, a `description` of what is seen, or a `commentary`; `null`: it does not say",
        ),
      ),
    ),
    audio_group: optionalText("of HLS: audio that is played with video of the same group; absent: with all"),
    preference: Type.Optional(
      Type.Integer({
        maximum: 0,
        description:
          "below 0: another version than the programme (a dub, a description, another angle), by what the manifest or yt-dlp says, or, if nothing else distinguishes them, audio in another language than the first one of a DASH manifest",
      }),
    ),
    has_drm: Type.Boolean({ description: "encrypted with keys from a licence server (DRM)" }),
    http_headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: "request headers that the site demands; cookies are never listed",
      }),
    ),
    http_chunk_size: Type.Optional(
      Type.Integer({ minimum: 1, description: "the site serves ranges of at most this many bytes at full speed" }),
    ),
  },
  { title: "Format" },
);
export type Format = Static<typeof Format>;

/** A format with what only its download needs, which is never stored or shown. */
export interface DownloadFormat extends Format {
  /** Cookies to send where they apply: the lines of `Set-Cookie`, joined as yt-dlp does. */
  cookies?: string;
  /** The segments in their order, the initialisation segment first, if no manifest lists them. */
  fragments?: readonly Fragment[];
}

/** A segment of a format that has no manifest. */
export interface Fragment {
  url: string;
  /** Seconds; `null` if unknown. */
  duration: number | null;
}

/**
 * What is on a page, as one normalised record. An unknown value is `null`, an empty array or an absent
 * key, never `""` or `0`. Times are RFC 3339 in UTC.
 */
export const PageInfo = Type.Object(
  {
    url: Type.String({ description: "the requested URL" }),
    webpage_url: Type.String({ description: "the page's canonical URL" }),
    site_name: nullableText("name of the site"),
    media_type: oneOf(["video", "audio", "none"], "what the page is about"),
    title: nullableText("title of the video, else of the page"),
    description: nullableText("description, plain text"),
    language: nullableText("BCP 47 tag of the page's language"),
    duration: nullableNumber("seconds"),
    uploaded_at: nullableText("RFC 3339 time in UTC, or a date if the page states no time"),
    uploader: nullableText("who published it"),
    uploader_url: nullableText("URL of who published it"),
    thumbnails: Type.Array(Thumbnail, { description: "best first" }),
    embed: nullable(Embed),
    view_count: nullableCount("views"),
    like_count: nullableCount("likes"),
    live_status: nullable(oneOf(["is_live", "is_upcoming", "was_live", "not_live"], "yt-dlp's live status")),
    age_limit: nullableCount("years"),
    tags: Type.Array(Type.String()),
    series: optionalText("of which the video is an episode; absent: unknown"),
    season_number: Type.Optional(Type.Integer({ minimum: 0, description: "in the series; absent: unknown" })),
    episode_number: Type.Optional(Type.Integer({ minimum: 0, description: "in the season; absent: unknown" })),
    formats: Type.Array(Format, { description: "best first" }),
    subtitles: Type.Record(Type.String(), Type.Array(Subtitle), { description: "by language" }),
    automatic_captions: Type.Optional(
      Type.Record(Type.String(), Type.Array(Subtitle), {
        description: "by language: subtitles that no person wrote or translated; absent: none",
      }),
    ),
    chapters: Type.Optional(
      Type.Array(Chapter, { maxItems: 500, description: "in order, one after the other; absent: none" }),
    ),
    sources: Type.Record(Type.String(), oneOf(vocabularies, "vocabulary"), {
      description: "field → vocabulary that its value came from",
    }),
    entries: Type.Optional(
      Type.Array(Entry, {
        maxItems: maxEntries,
        description:
          "entries of a playlist, in its order: the first ones, or those after `entries_cursor`; post an entry's `url` to download it",
      }),
    ),
    entries_next: optionalText("`entries_cursor` of the next entries; absent: there are no further ones"),
    entries_count: Type.Optional(
      nullableCount("entries of the playlist; `null`: the site does not say; absent: it is no playlist"),
    ),
    truncated: Type.Optional(
      Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
        description: "member → how many items, of a text characters, were left out, as the record was too long",
      }),
    ),
    warnings: Type.Optional(
      Type.Array(InfoWarning, {
        maxItems: 8,
        description: "what could not be read; absent: nothing is known to be missing",
      }),
    ),
    resolver: Type.String({ description: "name of the resolver that read the page" }),
    extractor: optionalText("yt-dlp's extractor that read the page"),
    video_id: optionalText("the site's own id of the video, as yt-dlp's extractor names it"),
    extractor_version: optionalText("version of yt-dlp; absent: it was not asked, or had no answer"),
    fetched_at: time("when the page was read, UTC"),
  },
  { title: "PageInfo" },
);
export type PageInfo = Static<typeof PageInfo>;

/**
 * Returns the page's own URL, as far as the record shows: the requested one, unless it only leads to the
 * page from another host. The canonical URL may have another scheme than the page and its media.
 */
export function pageUrlOf({ url, webpage_url }: Pick<PageInfo, "url" | "webpage_url">): string {
  return URL.parse(url)?.host === URL.parse(webpage_url)?.host ? url : webpage_url;
}

/** Request headers that authenticate a user. */
const secretHeaders: ReadonlySet<string> = new Set(["authorization", "cookie"]);

/** Returns what may be stored and shown: nothing beyond `PageInfo`, no header that authenticates a user. */
export function publicInfo(page: Omit<PageInfo, "formats"> & { formats: readonly DownloadFormat[] }): PageInfo {
  const formats = page.formats.map(({ http_headers = {}, ...format }) => {
    const shown = Object.entries(http_headers).filter(([name]) => !secretHeaders.has(name.toLowerCase()));
    return { ...format, ...(shown.length > 0 && { http_headers: Object.fromEntries(shown) }) };
  });
  return Value.Clean(PageInfo, { ...page, formats }) as PageInfo;
}
