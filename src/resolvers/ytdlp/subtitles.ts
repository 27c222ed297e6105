import type { Subtitle } from "../../model/entry.ts";
import type { PageInfo } from "../../model/page-info.ts";
import { parseLine } from "../../parsers/text.ts";
import { tryParseUrl } from "../../parsers/url.ts";
import { readExt } from "./formats.ts";
import { asObject, asList, asText } from "../../parsers/json-values.ts";

const maxLanguages = 200;
const maxSubtitles = 20;

/** What yt-dlp lists among the subtitles, but is none. */
const chats: ReadonlySet<string> = new Set(["live_chat", "rechat", "danmaku", "comments"]);

/**
 * Reads the subtitles of an info dict by language: 20 files of each, of 200 languages; without segments of DASH, which manifests list. Some
 * sites write `zh_CN`, which is no BCP 47 tag, for `zh-CN`.
 */
export function readSubtitles(subtitles: unknown, base: URL): PageInfo["subtitles"] {
  const languages = Object.entries(asObject(subtitles))
    .filter(([language]) => /^[a-z][\w.-]{0,59}$/i.test(language) && !chats.has(language))
    .slice(0, maxLanguages);
  const byTag = new Map<string, Subtitle[]>();
  for (const [language, list] of languages) {
    const tag = language.replaceAll("_", "-");
    byTag.getOrInsertComputed(tag, () => []).push(...readTracks(list, base));
  }
  const found = [...byTag].filter(([, tracks]) => tracks.length > 0);
  return Object.fromEntries(found.map(([tag, tracks]) => [tag, tracks.slice(0, maxSubtitles)]));
}

/** Whether there are any that a playlist of HLS may tell apart. */
export function hasHlsSubtitles(subtitles: PageInfo["subtitles"]): boolean {
  return Object.values(subtitles).some((tracks) => tracks.some(({ ext }) => ext === "m3u8"));
}

/** yt-dlp lists the best last. */
function readTracks(list: unknown, base: URL): Subtitle[] {
  const tracks = asList(list).slice(-maxSubtitles).toReversed().map(asObject);
  return tracks.flatMap(({ url, ext, name, protocol }) => {
    const href = tryParseUrl(asText(url), base)?.href;
    if (href === undefined || protocol === "http_dash_segments") return [];
    const isHls = asText(protocol)?.startsWith("m3u8") === true;
    return [{ url: href, ext: isHls ? "m3u8" : readExt(ext), name: parseLine(asText(name)) }];
  });
}
