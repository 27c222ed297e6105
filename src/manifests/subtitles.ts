import type { PageInfo, Subtitle } from "../page-info.ts";
import { maxFormats } from "./manifest.ts";

/** Collects subtitles by language (`und` if unknown), each URL once per language, at most 2,000. */
export function createSubtitles() {
  const byLanguage = new Map<string, Map<string, Subtitle>>();
  let size = 0;
  return {
    add(language: string | null, subtitle: Subtitle): void {
      if (size >= maxFormats) return;
      size += 1;
      const tag = language ?? "und";
      const known = byLanguage.get(tag) ?? new Map<string, Subtitle>();
      if (!known.has(subtitle.url)) known.set(subtitle.url, subtitle);
      byLanguage.set(tag, known);
    },
    record(): PageInfo["subtitles"] {
      return Object.fromEntries(
        byLanguage.entries().map(([tag, known]) => [tag, [...known.values()]]),
      );
    },
  };
}
