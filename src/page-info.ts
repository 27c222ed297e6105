import { type Static, Type } from "@sinclair/typebox";
import { amount, count, nullable, oneOf, text, time } from "./schema.ts";

/** Where a field's value came from. */
export const vocabularies = [
  "json-ld",
  "microdata",
  "og",
  "twitter",
  "oembed",
  "html",
  "manifest",
  "media",
] as const;
export type Vocabulary = (typeof vocabularies)[number];

export const Thumbnail = Type.Object({
  url: Type.String(),
  width: count("pixels"),
  height: count("pixels"),
});
export type Thumbnail = Static<typeof Thumbnail>;

export const Embed = Type.Object({
  url: Type.String({ description: "address of a player page to put into an iframe" }),
  width: count("pixels"),
  height: count("pixels"),
});
export type Embed = Static<typeof Embed>;

/** One way to get the medium; the field names are yt-dlp's. */
export const Format = Type.Object({
  format_id: Type.String({ description: "unique in the record; a task's options may name it" }),
  url: Type.String({ description: "address of the file, or of the variant's own manifest" }),
  manifest_url: text("address of the manifest that lists this format"),
  protocol: oneOf(["https", "m3u8", "dash"], "how it is fetched; https: one progressive file"),
  ext: text("file name extension of the medium, without the dot"),
  mime_type: text("media type as stated, without parameters"),
  width: count("pixels"),
  height: count("pixels"),
  fps: amount("frames per second"),
  vcodec: text('RFC 6381 codec of the pictures; "none": no pictures; null: unknown'),
  acodec: text('RFC 6381 codec of the sound; "none": no sound; null: unknown'),
  tbr: amount("total bit rate, kbit/s"),
  filesize: count("bytes"),
  language: text("BCP 47 tag of the sound"),
  has_drm: Type.Boolean({ description: "encrypted with keys that only a licence server gives" }),
});
export type Format = Static<typeof Format>;

export const Subtitle = Type.Object({
  url: Type.String(),
  ext: text("vtt, ttml, srt …"),
  name: text("label for people"),
});
export type Subtitle = Static<typeof Subtitle>;

/**
 * What is on a page, as one normalised record. Unknown is `null`, an empty array or an absent key,
 * never `""` or `0`. Times are RFC 3339 in UTC.
 */
export const PageInfo = Type.Object(
  {
    url: Type.String({ description: "the address that was asked for" }),
    webpage_url: Type.String({ description: "the page's canonical address" }),
    site_name: text("name of the site"),
    media_type: oneOf(["video", "audio", "none"], "what the page is about"),
    title: text("title of the medium, else of the page"),
    description: text("description, plain text"),
    language: text("BCP 47 tag of the page's language"),
    duration: amount("seconds"),
    uploaded_at: text("RFC 3339 time in UTC, or a date where the page states no time"),
    uploader: text("who published it"),
    uploader_url: text("address of who published it"),
    thumbnails: Type.Array(Thumbnail, { description: "best first" }),
    embed: nullable(Embed),
    view_count: count("views"),
    like_count: count("likes"),
    live_status: nullable(
      oneOf(["is_live", "is_upcoming", "was_live", "not_live"], "yt-dlp's live status"),
    ),
    age_limit: count("years"),
    tags: Type.Array(Type.String()),
    formats: Type.Array(Format, { description: "best first" }),
    subtitles: Type.Record(Type.String(), Type.Array(Subtitle), { description: "by language" }),
    sources: Type.Record(Type.String(), oneOf(vocabularies, "vocabulary"), {
      description: "field → the vocabulary that its value came from",
    }),
    resolver: Type.String({ description: "name of the resolver that made this record" }),
    fetched_at: time("when the page was read, UTC"),
  },
  { title: "PageInfo" },
);
export type PageInfo = Static<typeof PageInfo>;
