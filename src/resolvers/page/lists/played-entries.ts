import type { Entry } from "../../../model/entry.ts";
import { parseQuality } from "../../../parsers/quantities.ts";
import { isManifest, mediaTypeOf } from "../../../parsers/media-type.ts";
import { names } from "../lexicon/words.ts";
import type { ListedMedia, Resource } from "../metadata.ts";
import { namesFile } from "../scripts/data.ts";

/** One is what the page plays, as any other player does. */
const minEntries = 2;
const maxEntries = 500;

/** A medium that a page plays, with its files and manifests. */
interface PlayedMedium {
  resources: readonly Resource[];
  title: string | null;
  /** Seconds. */
  duration: number | null;
  thumbnail: URL | null;
  isTrailer: boolean;
}

/**
 * Returns what a page plays as a list, in page order; null for fewer than two media beside trailers. Files whose names differ in server,
 * format, codec, quality or language alone are of one medium, and so are all that have one title, or one picture and no title.
 */
export function listPlayed(media: readonly PlayedMedium[]): ListedMedia | null {
  const entries = new Map<string, Entry>();
  const films: Entry[] = [];
  for (const { resources, title, duration, thumbnail, isTrailer } of media) {
    const url = bestOf(resources);
    if (url === undefined || entries.size === maxEntries) continue;
    const name = nameOfFile(url);
    if (entries.has(name)) continue;
    const entry = { url: url.href, title, duration, thumbnail: thumbnail?.href ?? null, uploaded_at: null };
    entries.set(name, entry);
    if (!isTrailer) films.push(entry);
  }
  if (films.length < minEntries || areOne(films)) return null;
  return { entries: [...entries.values()], entries_count: entries.size < maxEntries ? entries.size : null };
}

/** Whether media have one title, or one picture and no title. */
function areOne(media: readonly Entry[]): boolean {
  const titles = new Set(media.map(({ title }) => title && nameOfVersions(title.split(/[^\p{L}\p{N}]+/u))));
  const pictures = new Set(media.map(({ thumbnail }) => thumbnail));
  return titles.size === 1 && (!titles.has(null) || (pictures.size === 1 && !pictures.has(null)));
}

/** Returns the URL of a manifest, which lists all qualities, else of the tallest file, else of the first one. */
function bestOf(resources: readonly Resource[]): URL | undefined {
  const manifest = resources.find(({ type, url }) => isManifest(type, url));
  const [best] = resources.toSorted((a, b) => (b.height ?? 0) - (a.height ?? 0));
  return (manifest ?? best)?.url;
}

/** Heights that a file's name states as a number alone. */
const usualHeights = new Set("144 240 360 480 540 576 720 1080 1440 2160".split(" "));

/** Returns the host and path of a file without its extension and its quality. */
export function nameWithoutQuality(url: URL): string {
  return `${url.host} ${wordsOf(url)
    .filter((word) => !statesQuality(word))
    .join(" ")}`;
}

/** Returns what the files of one medium have in common. The query of a file that has an extension is for access or caches. */
export function nameOfFile(url: URL): string {
  const isAudio = mediaTypeOf(null, url).kind === "audio";
  const name = nameOfVersions(wordsOf(url), isAudio);
  if (name === "") return url.href;
  return namesFile(url.pathname) ? name : name + url.search;
}

/** Returns these words without those in which versions of one medium differ. */
function nameOfVersions(words: readonly string[], isAudio = false): string {
  const differing = names.bitsOf("version", "fileFormat");
  const isCommon = (word: string) => !statesQuality(word) && (names.rolesIn(word) & differing) === 0;
  const common = words.filter((word) => isCommon(word) || (isAudio && usualHeights.has(word)));
  return common.join(" ").trim().toLowerCase();
}

function wordsOf({ pathname }: URL): string[] {
  const point = pathname.lastIndexOf(".");
  return pathname.slice(0, point < pathname.lastIndexOf("/") ? undefined : point).split(/[-_./]/);
}

function statesQuality(word: string): boolean {
  const hasUnit = /^\d{1,4}[pk]$/i.test(word) && parseQuality(word) !== null;
  return hasUnit || /^\d{2,4}kb$/i.test(word) || usualHeights.has(word) || names.has(word, "quality");
}
