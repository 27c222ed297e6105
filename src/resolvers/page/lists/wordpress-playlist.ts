import type { Entry } from "../../../model/entry.ts";
import { parseJson } from "../../../model/schema.ts";
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
    const tracks = membersOf(parseJson(source))["tracks"];
    for (const track of Array.isArray(tracks) ? tracks.slice(0, maxTracks) : []) {
      const entry = readTrack(membersOf(track), base);
      if (entry !== null && entries.size < maxTracks && !entries.has(entry.url)) entries.set(entry.url, entry);
    }
  }
  const listed = [...entries.values()];
  return listed.length < minEntries
    ? null
    : { entries: listed, entries_count: listed.length < maxTracks ? listed.length : null };
}

function readTrack(track: Record<string, unknown>, base: URL): Entry | null {
  const url = tryParseUrl(textOf(track["src"]), base);
  if (url === null) return null;
  return {
    url: url.href,
    title: parseLine(textOf(track["title"])),
    duration: parseDuration(textOf(membersOf(track["meta"])["length_formatted"])),
    thumbnail: tryParseUrl(textOf(membersOf(track["image"])["src"]), base)?.href ?? null,
    uploaded_at: null,
  };
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
