import { type Static, Type } from "@sinclair/typebox";
import { nullableNumber, nullableText, oneOf, optionalText } from "./schema.ts";

/** Most entries of a playlist that one record lists. */
export const maxEntries = 200;

/**
 * What subtitles are for: what is said; also what is to be heard besides; only what the listeners of the programme's own
 * language need too, such as signs.
 */
export const subtitleRoles = ["subtitles", "captions", "forced"] as const;
export type SubtitleRole = (typeof subtitleRoles)[number];

/** A file of subtitles in one language. */
export const Subtitle = Type.Object(
  {
    url: Type.String(),
    ext: nullableText("vtt, ttml, srt …; m3u8: an HLS playlist of segments"),
    name: nullableText("label to show to people"),
    role: Type.Optional(
      oneOf(
        subtitleRoles,
        "`subtitles`: what is said; `captions`: other sounds too; `forced`: only what is said in another language; absent: the site does not say",
      ),
    ),
    manifest_url: optionalText("URL of the MPD that lists the segments"),
    format_id: optionalText("which text track of `manifest_url` it is"),
  },
  { title: "Subtitle" },
);
export type Subtitle = Static<typeof Subtitle>;

/** A part of the video that the site names. */
export const Chapter = Type.Object(
  {
    start_time: Type.Number({ minimum: 0, description: "seconds" }),
    end_time: nullableNumber("seconds; `null`: it lasts to the end, which is unknown"),
    title: Type.String(),
  },
  { title: "Chapter" },
);
export type Chapter = Static<typeof Chapter>;

/** A chapter as a page or a file states it. */
export interface StatedChapter {
  /** Seconds; `null` if it is not stated, or no number. */
  start: number | null;
  end: number | null;
  title: string | null;
}

/** Which video of which site it is, as far as that is known before the page is read. */
export const SiteVideo = Type.Object(
  {
    extractor: Type.String({ description: "yt-dlp's extractor for the URL; `feed`: an entry of a feed" }),
    id: Type.String({
      description: "the site's own id of the video; of a feed: its URL and the id (`guid`) that it states",
    }),
  },
  {
    title: "SiteVideo",
    description:
      "which video the URL or the playlist says it is; absent: it does not say, or `if_exists` was not `reuse`",
  },
);
export type SiteVideo = Static<typeof SiteVideo>;

/** One page of a playlist. */
export const Entry = Type.Object(
  {
    url: Type.String({ description: "URL of the entry's page, or of its medium" }),
    title: nullableText("title"),
    duration: nullableNumber("seconds"),
    thumbnail: Type.Optional(nullableText("URL of a picture")),
    uploaded_at: Type.Optional(nullableText("when it was published, RFC 3339")),
    uploader: Type.Optional(nullableText("who published it")),
    chapters: Type.Optional(Type.Array(Chapter, { maxItems: 500, description: "of an episode whose feed lists them" })),
    chapters_url: optionalText("URL of a file of chapters that its feed names, which is read for a download"),
    subtitles: Type.Optional(
      Type.Record(Type.String(), Type.Array(Subtitle), { description: "transcripts of an episode, by language" }),
    ),
    video: Type.Optional(SiteVideo),
  },
  { title: "Entry" },
);
export type Entry = Static<typeof Entry>;
