import type { Entry } from "../../../model/entry.ts";
import { parseJson } from "../../../model/schema.ts";
import { asList, asObject, asText, type JsonObject } from "../../../parsers/json-values.ts";
import { parseDuration } from "../../../parsers/quantities.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import type { ListedMedia } from "../metadata.ts";

/** One is what the page plays, as any other player does. */
const minEntries = 2;
const maxTracks = 500;

/**
 * Returns what the playlists of WordPress (its shortcode `playlist`) play on a page, in page order; null for fewer than two files.
 */
export function readWordPressPlaylists(sources: readonly string[], base: URL): ListedMedia | null {
  const entries = new Map<string, Entry>();
  for (const source of sources) {
    for (const track of asList(asObject(parseJson(source))["tracks"]).slice(0, maxTracks)) {
      const entry = readTrack(asObject(track), base);
      if (entry !== null && entries.size < maxTracks && !entries.has(entry.url)) entries.set(entry.url, entry);
    }
  }
  const listed = [...entries.values()];
  return listed.length < minEntries
    ? null
    : { entries: listed, entries_count: listed.length < maxTracks ? listed.length : null };
}

function readTrack(track: JsonObject, base: URL): Entry | null {
  const url = tryParseUrl(asText(track["src"]), base);
  if (url === null) return null;
  return {
    url: url.href,
    title: parseLine(asText(track["title"])),
    duration: parseDuration(asText(asObject(track["meta"])["length_formatted"])),
    thumbnail: tryParseUrl(asText(asObject(track["image"])["src"]), base)?.href ?? null,
    uploaded_at: null,
  };
}
