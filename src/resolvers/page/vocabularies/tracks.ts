import type { PageInfo } from "../../../page-info.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import type { Attributes } from "../markup/attributes.ts";
import { readLanguage } from "../../../parsers/language.ts";
import { readLine } from "../../../parsers/text.ts";

const kinds = new Set(["subtitles", "captions"]);

/** Subtitles from `<track>` elements, by language; `und` where none is stated (BCP 47). */
export function readTracks(tracks: readonly Attributes[], base: URL): PageInfo["subtitles"] {
  const subtitles = new Map<string, PageInfo["subtitles"][string]>();
  for (const track of tracks) {
    const url = tryParseUrl(track.get("src"), base);
    if (url === null || !kinds.has((track.get("kind") ?? "subtitles").toLowerCase())) continue;
    const language = readLanguage(track.get("srclang")) ?? "und";
    const ext = /\.([a-z0-9]{2,5})$/i.exec(url.pathname)?.[1]?.toLowerCase() ?? "vtt";
    const entry = { url: url.href, ext, name: readLine(track.get("label")) };
    subtitles.set(language, [...(subtitles.get(language) ?? []), entry]);
  }
  return Object.fromEntries(subtitles);
}
