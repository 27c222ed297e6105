import type { Chapter, Entry, Subtitle } from "../../../model/entry.ts";
import { parseDuration } from "../../../parsers/duration.ts";
import { parseLanguage } from "../../../parsers/language.ts";
import { bareMediaType } from "../../../parsers/media-type.ts";
import { parseLine } from "../../../parsers/text.ts";
import type { Fields } from "./feed-fields.ts";

type Attributes = Readonly<Record<string, string>>;

/** Of an episode; further ones are left out. */
const maxChapters = 500;
const maxTranscripts = 20;
const maxTitleLength = 200;

/** Notes a chapter of Podlove Simple Chapters (https://podlove.org/simple-chapters). */
export function noteChapter({ chapters }: Fields, { start = "", title = "" }: Attributes): void {
  const line = parseLine(title.slice(0, maxTitleLength));
  const startS = /^[0:.]+$/.test(start.trim()) ? 0 : parseDuration(start);
  if (line !== null && startS !== null && chapters.length < maxChapters) chapters.push({ startS, title: line });
}

/** Kinds of transcripts that can be read, by their media type; of others the URL says it. */
const kinds: Readonly<Record<string, string>> = {
  "text/vtt": "vtt",
  "application/x-subrip": "srt",
  "application/srt": "srt",
  "text/srt": "srt",
  "application/ttml+xml": "ttml",
};

/** Notes a transcript as podcasts have them (https://podcasting2.org/docs/podcast-namespace/tags/transcript); those without times are left out. */
export function noteTranscript(
  { transcripts }: Fields,
  url: URL | null,
  { type = "", language, rel }: Attributes,
): void {
  const stated = kinds[bareMediaType(type)?.toLowerCase() ?? ""];
  const ext = stated ?? /\.(vtt|srt|ttml)$/i.exec(url?.pathname ?? "")?.[1]?.toLowerCase();
  if (url === null || ext === undefined || transcripts.length >= maxTranscripts) return;
  const role = rel === "captions" ? { role: "captions" as const } : {};
  transcripts.push({ language: parseLanguage(language), subtitle: { url: url.href, ext, name: null, ...role } });
}

/** Returns what was noted of an episode; `language`: that of the feed. A file of chapters only if the feed lists none itself. */
export function textsOf(
  { chapters, chaptersUrl, transcripts }: Fields,
  language: string | null,
): Pick<Entry, "chapters" | "chapters_url" | "subtitles"> {
  const sorted = chapters.toSorted((a, b) => a.startS - b.startS);
  const listed = sorted.map(({ startS, title }, index): Chapter => {
    return { start_time: startS, end_time: sorted[index + 1]?.startS ?? null, title };
  });
  const subtitles: Record<string, Subtitle[]> = {};
  for (const { language: own, subtitle } of transcripts) (subtitles[own ?? language ?? "und"] ??= []).push(subtitle);
  return {
    ...(listed.length > 0 ? { chapters: listed } : chaptersUrl !== null && { chapters_url: chaptersUrl.href }),
    ...(transcripts.length > 0 && { subtitles }),
  };
}
