import type { Subtitle } from "../model/entry.ts";
import type { PageInfo } from "../model/page-info.ts";
import { maxFormats } from "./manifest.ts";

/** Limit of all URLs together, characters. */
const maxUrlsLength = 1024 * 1024;

/**
 * Collects subtitles by language (`und` if unknown), each URL (of segments, each track) once per language, at most 2,000 with 1 Mi
 * characters of URLs.
 */
export function createSubtitles() {
  const byLanguage = new Map<string, Map<string, Subtitle>>();
  let size = 0;
  let urlsLength = 0;
  return {
    add(language: string | null, subtitle: Subtitle): void {
      urlsLength += subtitle.url.length;
      if (size >= maxFormats || urlsLength > maxUrlsLength) return;
      size += 1;
      const tag = language ?? "und";
      const known = byLanguage.get(tag) ?? new Map<string, Subtitle>();
      const key = `${subtitle.url} ${subtitle.format_id ?? ""}`;
      if (!known.has(key)) known.set(key, subtitle);
      byLanguage.set(tag, known);
    },
    record(): PageInfo["subtitles"] {
      return Object.fromEntries(byLanguage.entries().map(([tag, known]) => [tag, [...known.values()]]));
    },
  };
}

/** Returns the subtitles of all listings; those that come first stay first in their language. Limits are those of `createSubtitles`. */
export function joinSubtitles(listings: readonly PageInfo["subtitles"][]): PageInfo["subtitles"] {
  const joined = createSubtitles();
  for (const listing of listings) {
    for (const [tag, subtitles] of Object.entries(listing)) {
      for (const subtitle of subtitles) joined.add(tag, subtitle);
    }
  }
  return joined.record();
}
