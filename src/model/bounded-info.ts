import { hasVideo } from "./format-ranking.ts";
import type { Subtitle } from "./entry.ts";
import type { Format, PageInfo } from "./page-info.ts";

/** Longest record that `GET /info` returns, bytes of JSON. */
export const maxInfoBytes = 1_000_000;

/**
 * Returns the record with at most `maxBytes` bytes of JSON, or a little more if that is less than 128 KiB; the same one if it is not
 * longer. `truncated` then says what was left out. The rule, in this order:
 *
 * - texts have at most 1,000 characters; a URL over 8 KiB becomes null, and `webpage_url` the requested one;
 * - `entries` keeps its first items that fit: all of one that a resolver makes;
 * - each member of `parts` keeps its first items that fit into its part of the bytes that are left, an item that does not
 *   fit is passed over; of the description so many characters stay as fit even if each took six bytes;
 * - `formats` gets all that is left: first those of `keptFormats`, then the best with video and the best without in turn.
 *   Their order stays.
 *
 * @param keptFormats Returns `format_id`s; called only for a record that is too long.
 */
export function boundInfo(
  info: PageInfo,
  maxBytes: number,
  keptFormats: () => readonly (string | undefined)[] = () => [],
): PageInfo {
  if (sizeOf(info) <= maxBytes) return info;
  const truncated: Record<string, number> = {};
  const bounded: PageInfo = {
    ...info,
    description: null,
    thumbnails: [],
    tags: [],
    subtitles: {},
    formats: [],
    truncated,
  };
  delete bounded.automatic_captions;
  delete bounded.chapters;
  boundTexts(bounded, truncated);
  if (info.entries !== undefined) bounded.entries = [];
  let left = maxBytes - sizeOf(bounded) - namesBytes;

  /** Returns the items that fit into a part of what is left, and takes that away. */
  function take<T>(name: string, items: readonly T[], part: number): T[] {
    let free = left * part;
    const kept = items.filter((item) => {
      const size = sizeOf(item) + 1;
      const fits = size <= free;
      if (fits) free -= size;
      return fits;
    });
    left -= left * part - free;
    if (kept.length < items.length) truncated[name] = items.length - kept.length;
    return kept;
  }

  if (info.entries !== undefined) bounded.entries = take("entries", info.entries, 1);
  const most = Math.max(0, Math.floor((left * parts.description) / 6));
  bounded.description = cut("description", info.description, most, truncated);
  left -= sizeOf(bounded.description);
  bounded.thumbnails = take("thumbnails", info.thumbnails, parts.thumbnails);
  bounded.tags = take("tags", info.tags, parts.tags);
  bounded.subtitles = toSubtitles(take("subtitles", subtitlesOf(info.subtitles), parts.subtitles));
  if (info.chapters !== undefined) bounded.chapters = take("chapters", info.chapters, parts.chapters);
  if (info.automatic_captions !== undefined) {
    const listed = take("automatic_captions", subtitlesOf(info.automatic_captions), parts.automatic_captions);
    bounded.automatic_captions = toSubtitles(listed);
  }
  const kept = new Set(take("formats", inKeepingOrder(info.formats, new Set(keptFormats())), 1));
  bounded.formats = info.formats.filter((format) => kept.has(format));
  return bounded;
}

/** Parts of what is left, in this order. */
const parts = {
  description: 1 / 8,
  thumbnails: 1 / 8,
  tags: 1 / 8,
  subtitles: 1 / 4,
  chapters: 1 / 4,
  automatic_captions: 1 / 4,
};

/** For the members of `truncated`. */
const namesBytes = 1_000;

const maxText = 1_000;
const maxUrl = 8 * 1024;

const encoder = new TextEncoder();

function sizeOf(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length;
}

function boundTexts(info: PageInfo, truncated: Record<string, number>): void {
  for (const name of ["site_name", "title", "language", "uploaded_at", "uploader"] as const) {
    info[name] = cut(name, info[name], maxText, truncated);
  }
  const isLong = (url: string | null | undefined): boolean => (url?.length ?? 0) > maxUrl;
  if (isLong(info.uploader_url)) [info.uploader_url, truncated["uploader_url"]] = [null, 1];
  if (isLong(info.embed?.url)) [info.embed, truncated["embed"]] = [null, 1];
  if (isLong(info.webpage_url)) [info.webpage_url, truncated["webpage_url"]] = [info.url, 1];
}

function cut(name: string, text: string | null, most: number, truncated: Record<string, number>): string | null {
  if (text === null || text.length <= most) return text;
  // Not within a pair of surrogates.
  const end = (text.codePointAt(most - 1) ?? 0) > 0xffff ? most - 1 : most;
  truncated[name] = text.length - end;
  return text.slice(0, end);
}

/** With its language, as each may be the first of it. */
type NamedSubtitle = [language: string, subtitle: Subtitle];

function subtitlesOf(subtitles: PageInfo["subtitles"]): NamedSubtitle[] {
  return Object.entries(subtitles).flatMap(([language, files]) => files.map((file): NamedSubtitle => [language, file]));
}

function toSubtitles(named: readonly NamedSubtitle[]): PageInfo["subtitles"] {
  const byLanguage = Map.groupBy(named, ([language]) => language);
  return Object.fromEntries(byLanguage.entries().map(([language, files]) => [language, files.map(([, file]) => file)]));
}

function inKeepingOrder(formats: readonly Format[], kept: ReadonlySet<string | undefined>): Format[] {
  const first = formats.filter(({ format_id }) => kept.has(format_id));
  const others = formats.filter(({ format_id }) => !kept.has(format_id));
  const videos = others.filter(hasVideo);
  const audios = others.filter((format) => !hasVideo(format));
  const inTurn = Array.from({ length: Math.max(videos.length, audios.length) }, (_, n) => [videos[n], audios[n]]);
  return [...first, ...inTurn.flat().filter((format) => format !== undefined)];
}
