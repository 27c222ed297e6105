import type { Entry } from "../../../model/entry.ts";
import { parseQuality } from "../../../parsers/quantities.ts";
import { mediaTypeOf } from "../../../parsers/media-type.ts";
import { names } from "../lexicon/words.ts";
import type { ListedMedia, Resource } from "../metadata.ts";

/** One is what the page plays, as any other player does. */
const minEntries = 2;
const maxEntries = 500;

/** A medium that a page plays, with its files and manifests. */
export interface PlayedMedium {
  resources: readonly Resource[];
  title: string | null;
  /** Seconds. */
  duration: number | null;
  thumbnail: URL | null;
  isTrailer: boolean;
}

/**
 * Returns what a page plays as a list, in page order; null for fewer than two media beside trailers. Media whose files differ in quality
 * alone are one.
 */
export function listPlayed(media: readonly PlayedMedium[]): ListedMedia | null {
  const entries = new Map<string, Entry>();
  let trailers = 0;
  for (const { resources, title, duration, thumbnail, isTrailer } of media) {
    const url = bestOf(resources);
    if (url === undefined || entries.size === maxEntries) continue;
    const name = nameWithoutQuality(url) + url.search;
    if (entries.has(name)) continue;
    entries.set(name, { url: url.href, title, duration, thumbnail: thumbnail?.href ?? null, uploaded_at: null });
    if (isTrailer) trailers += 1;
  }
  if (entries.size - trailers < minEntries) return null;
  return { entries: [...entries.values()], entries_count: entries.size < maxEntries ? entries.size : null };
}

/** Returns the URL of a manifest, which lists all qualities, else of the tallest file, else of the first one. */
function bestOf(resources: readonly Resource[]): URL | undefined {
  const manifest = resources.find(({ type, url }) => ["hls", "dash"].includes(mediaTypeOf(type, url).kind));
  const [best] = resources.toSorted((a, b) => (b.height ?? 0) - (a.height ?? 0));
  return (manifest ?? best)?.url;
}

/** Heights that a file's name states as a number alone. */
const usualHeights = new Set("144 240 360 480 540 576 720 1080 1440 2160".split(" "));

/** Returns the host and path of a file without its extension and its quality. */
export function nameWithoutQuality({ host, pathname }: URL): string {
  const point = pathname.lastIndexOf(".");
  const words = pathname.slice(0, point < 0 ? undefined : point).split(/[-_./]/);
  return `${host} ${words.filter((word) => !statesQuality(word)).join(" ")}`;
}

function statesQuality(word: string): boolean {
  const hasUnit = /^\d{1,4}[pk]$/i.test(word) && parseQuality(word) !== null;
  return hasUnit || usualHeights.has(word) || names.has(word, "quality");
}
