import type { Subtitle, Entry, StatedChapter } from "../../../model/entry.ts";
import { Parser } from "htmlparser2";
import { listChapters } from "../../chapters.ts";
import { parseOffset } from "../../../parsers/quantities.ts";
import { parseLine, parseLanguage } from "../../../parsers/text.ts";
import { bareMediaType } from "../../../parsers/media-type.ts";

/** What is read of the feed itself, or of one item. */
export interface Fields {
  /** By the name of the element: the first text of each. */
  texts: Map<string, string>;
  medium: URL | null;
  link: URL | null;
  picture: URL | null;
  chapters: StatedChapter[];
  chaptersUrl: URL | null;
  transcripts: { language: string | null; subtitle: Subtitle }[];
}

/** The elements whose texts are read, by what they state; the first one that has a text counts. */
export const names = {
  title: ["title", "atom:title", "itunes:title"],
  description: ["description", "subtitle", "itunes:summary"],
  uploader: ["itunes:author", "name", "dc:creator"],
  language: ["language", "dc:language"],
  date: ["pubdate", "published", "atom:published", "dc:date", "updated"],
  // The attribute of this name (Media RSS).
  duration: ["itunes:duration", "media:content"],
  id: ["guid", "id", "atom:id"],
  link: ["link"],
  picture: ["url", "logo", "icon"],
} as const;
export const readNames: ReadonlySet<string> = new Set(Object.values(names).flat());
/** The elements within which the texts of those within them count too. */
export const wrappers: ReadonlySet<string> = new Set(["author", "image"]);
export const wrapped: ReadonlySet<string> = new Set(["name", "url"]);

/** Returns those of what says nothing. */
export function newFields(): Fields {
  return {
    texts: new Map(),
    medium: null,
    link: null,
    picture: null,
    chapters: [],
    chaptersUrl: null,
    transcripts: [],
  };
}

type Attributes = Readonly<Record<string, string>>;

/** Of an episode; further ones are left out. */
const maxChapters = 500;
const maxTranscripts = 20;
const maxTitleLength = 200;

/** Notes a chapter of Podlove Simple Chapters (https://podlove.org/simple-chapters). */
export function noteChapter({ chapters }: Fields, { start = "", title = "" }: Attributes): void {
  const line = parseLine(title.slice(0, maxTitleLength));
  if (line !== null && chapters.length < maxChapters) {
    chapters.push({ start: parseOffset(start), end: null, title: line });
  }
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
  const stated = kinds[bareMediaType(type) ?? ""];
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
  // The duration in a feed may be that of a version with other advertisements.
  const listed = listChapters(chapters, null);
  const subtitles: Record<string, Subtitle[]> = {};
  for (const { language: own, subtitle } of transcripts) (subtitles[own ?? language ?? "und"] ??= []).push(subtitle);
  return {
    ...(listed.length > 0 ? { chapters: listed } : chaptersUrl !== null && { chapters_url: chaptersUrl.href }),
    ...(transcripts.length > 0 && { subtitles }),
  };
}

/** Returns the first of these texts that is not blank. */
export function first(texts: ReadonlyMap<string, string>, of: readonly string[]): string | undefined {
  return of.map((name) => texts.get(name)).find((text) => text !== undefined && text.trim() !== "");
}

/** Elements that begin a line of their own. */
const lines: ReadonlySet<string> = new Set(["br", "div", "h1", "h2", "h3", "li", "p", "tr"]);
const unshown: ReadonlySet<string> = new Set(["script", "style", "template", "title"]);

/** Returns the text that a fragment of HTML shows: without tags, with character references replaced. */
export function htmlText(html: string): string {
  let text = "";
  let hidden = 0;
  const parser = new Parser({
    onopentagname(name) {
      if (unshown.has(name)) hidden += 1;
      else if (lines.has(name)) text += "\n";
    },
    ontext(part) {
      if (hidden === 0) text += part;
    },
    onclosetag(name) {
      if (unshown.has(name)) hidden -= 1;
    },
  });
  parser.end(html);
  return text.trim();
}
