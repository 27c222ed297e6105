import { ServiceError } from "../model/errors.ts";
import { shorten, urlForMessage } from "../net/http-url.ts";
import type { Format, PageInfo } from "../model/page-info.ts";
import type { Subtitle } from "../model/entry.ts";

/** What an HLS playlist or a DASH MPD lists, in its own order. */
export interface Manifest extends Pick<PageInfo, "subtitles" | "live_status"> {
  formats: ManifestFormat[];
  /** Seconds; `null` if it is unknown or the stream has not ended. */
  duration: number | null;
}

export interface ManifestFormat extends Format {
  /** Mean, listed or estimated, of the bit rate whose peak `tbr` is, kbit/s. Absent: `tbr` is the mean, or unknown. */
  averageTbr?: number;
}

/** Limit of the formats of one manifest; each `format_id` is unique in it. */
export const maxFormats = 2_000;

/** Of a manifest, in bytes as fetched and in characters: parsing a longer one would block the event loop for too long. */
export const maxManifestLength = 4_194_304;

/** @throws ServiceError `upstream_invalid` if `text` has more than 4 Mi characters. */
export function checkLength(text: string, url: URL): void {
  if (text.length <= maxManifestLength) return;
  throw invalidManifestError(url, `it has ${text.length} characters, the limit is ${maxManifestLength}`);
}

/** `url` is the manifest's; `rule` says what it must or must not contain; `got`: what it contains instead. */
export function invalidManifestError(url: URL, rule: string, got?: string): ServiceError {
  const value = got === undefined ? "" : `, got ${JSON.stringify(shorten(got, 100))}`;
  return new ServiceError("upstream_invalid", `cannot read the manifest at ${urlForMessage(url)}: ${rule}${value}`);
}

/** The error of a manifest whose text is cut off: what it lists so far may lack all audio, or all video. A retry may get the rest. */
export function cutOffError(url: URL, sign: string): ServiceError {
  const rule = `${sign}, so it is cut off`;
  return new ServiceError("upstream_unreachable", `cannot read the manifest at ${urlForMessage(url)}: ${rule}`);
}

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
      const known = byLanguage.getOrInsertComputed(language ?? "und", () => new Map());
      const key = `${subtitle.url} ${subtitle.format_id ?? ""}`;
      if (!known.has(key)) known.set(key, subtitle);
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

/**
 * Returns a function that makes ids unique: a repeated id gets `~1`, `~2` …, which `findFormat` strips.
 * Manifest readers pass `-`, because their ids must not look like that. Ids have at most 255 characters.
 */
export function createFormatIds(separator: "~" | "-" = "~"): (wanted: string) => string {
  const taken = new Set<string>();
  /** The next number to try, by stem. */
  const next = new Map<string, number>();
  return (wanted) => {
    const wish = wanted
      .replaceAll(/[\p{Cc}\p{Bidi_Control}\s]+/gu, " ")
      .slice(0, 255)
      .toWellFormed();
    const stem = wish.slice(0, 240).toWellFormed();
    let id = wish;
    for (let n = next.get(stem) ?? 1; taken.has(id); n += 1) {
      id = `${stem}${separator}${n}`;
      next.set(stem, n + 1);
    }
    taken.add(id);
    return id;
  };
}

/**
 * Returns the format with this id, else the one whose id differs only by the `~n` that `createFormatIds`
 * appended in a record of several manifests; `undefined` if there is none.
 */
export function findFormat(formats: readonly Format[], formatId: string): Format | undefined {
  const stem = formatId.replace(/~\d{1,9}$/, "");
  return formats.find(({ format_id }) => format_id === formatId) ?? formats.find(({ format_id }) => format_id === stem);
}
