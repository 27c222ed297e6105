import { ServiceError } from "../errors.ts";
import type { Format, PageInfo, Subtitle } from "../page-info.ts";
import { urlForMessage } from "../net/http-url.ts";
import { readLanguage } from "../parsers/language.ts";

/** What an HLS playlist or a DASH MPD lists, in its own order. */
export interface Manifest {
  /** At most `maxFormats`; each `format_id` once. */
  formats: Format[];
  subtitles: PageInfo["subtitles"];
  /** Seconds; `null` where the manifest does not say it or the end is not known yet. */
  duration: number | null;
  live_status: PageInfo["live_status"];
}

/** No more formats are taken from one manifest, nor are more variants looked at. */
export const maxFormats = 2_000;

const maxTextLength = 200;

/** A longer text is refused: reading it would hold up everything else. */
const maxLength = 4_194_304;

/** @throws ServiceError `upstream_invalid` for a text of more than 4 Mi characters. */
export function checkLength(text: string, url: URL): void {
  if (text.length <= maxLength) return;
  throw invalidManifestError(url, `it has ${text.length} characters, the limit is ${maxLength}`);
}

export function invalidManifestError(url: URL, rule: string): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    `cannot read the manifest at ${urlForMessage(url)}: ${rule}`,
  );
}

export interface Codecs {
  vcodec: string | null;
  acodec: string | null;
  /** Whether it names a codec of subtitles. */
  text: boolean;
}

/**
 * An RFC 6381 list, by kind. A kind that is not in it is `"none"`; `null` where nothing is stated,
 * or where a name that we do not know may be of that kind.
 */
export function splitCodecs(list: string | undefined): Codecs {
  const found: Codecs = { vcodec: null, acodec: null, text: false };
  let isComplete = true;
  for (const entry of (list ?? "").slice(0, 1_000).split(",")) {
    const codec = entry.trim();
    if (codec === "") continue;
    const name = codec.slice(0, maxTextLength).split(".", 1)[0]?.toLowerCase() ?? "";
    if (videoCodecs.has(name)) found.vcodec ??= codec.slice(0, maxTextLength);
    else if (audioCodecs.has(name)) found.acodec ??= codec.slice(0, maxTextLength);
    else if (textCodecs.has(name)) found.text = true;
    else isComplete = false;
  }
  const isKnown = found.vcodec !== null || found.acodec !== null || found.text;
  if (isKnown && isComplete) {
    found.vcodec ??= "none";
    found.acodec ??= "none";
  }
  return found;
}

/**
 * Gives each id once: a repeated one gets `~1`, `~2` …, so that what it was made of can be found
 * again (`findFormat`); readers of manifests, whose ids must not look like that, take `-`. Ids are
 * at most 255 long.
 */
export function createFormatIds(separator: "~" | "-" = "~"): (wanted: string) => string {
  const taken = new Map<string, number>();
  return (wanted) => {
    const wish = wanted
      .replaceAll(/[\p{Cc}\s]+/gu, " ")
      .slice(0, 255)
      .toWellFormed();
    const stem = wish.slice(0, 240).toWellFormed();
    let id = wish;
    for (let n = taken.get(wish) ?? 1; taken.has(id); n += 1) {
      id = `${stem}${separator}${n}`;
      taken.set(wish, n + 1);
    }
    taken.set(id, 1);
    return id;
  };
}

/**
 * The one of a manifest's formats that a record lists as `formatId`: there, where several manifests
 * have the same id, it may have got another ending.
 */
export function findFormat(formats: readonly Format[], formatId: string): Format | undefined {
  const stem = formatId.replace(/~\d{1,9}$/, "");
  return (
    formats.find(({ format_id }) => format_id === formatId) ??
    formats.find(({ format_id }) => format_id === stem)
  );
}

/** Subtitles by language (`und` where none is stated), the same address only once. */
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

/** A language tag (BCP 47) in its usual spelling; `null` for "undetermined" and its like. */
export function languageTag(value: string | undefined): string | null {
  const tag = readLanguage(value);
  return tag === null || noLanguage.has(tag) ? null : tag;
}

/** Whole bits per second as text → kbit/s; `null` for what is not a number above 0. */
export function kilobits(bitsPerSecond: string | undefined): number | null {
  if (bitsPerSecond === undefined || !/^\d{1,12}(?:\.\d{0,9})?$/.test(bitsPerSecond)) return null;
  return Math.trunc(Number(bitsPerSecond)) / 1_000 || null;
}

/** Frames per second as `25`, `59.940` or `30000/1001`; up to 1,000. */
export function framesPerSecond(value: string | undefined): number | null {
  const parts = /^(\d{1,9}(?:\.\d{0,9})?)(?:\/(\d{1,9}))?$/.exec(value ?? "");
  if (parts === null) return null;
  const rate = thousandths(Number(parts[1]) / Number(parts[2] ?? 1));
  return rate > 0 && rate <= 1_000 ? rate : null;
}

/** Seconds without what binary fractions leave behind: microseconds, `null` for none at all. */
export function roundSeconds(seconds: number): number | null {
  return Number.isFinite(seconds) ? Math.round(seconds * 1e6) / 1e6 || null : null;
}

function thousandths(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

const noLanguage: ReadonlySet<string> = new Set(["und", "mis", "mul", "zxx"]);

const videoCodecs: ReadonlySet<string> = new Set(
  (
    "avc1 avc2 avc3 avc4 hvc1 hvc2 hev1 hev2 lhv1 lhe1 vvc1 vvi1 evc1 dva1 dvav dvh1 dvhe dvc1 dvi1 " +
    "vp8 vp9 vp08 vp09 vp10 av1 av01 dav1 mp4v mp2v s263 h263 h264 h265 theora apcn apch jpeg mjpg"
  ).split(" "),
);

const audioCodecs: ReadonlySet<string> = new Set(
  (
    "mp4a mp3 aac opus vorbis flac alac ac-3 ec-3 ac-4 eac3 ac3 dtsc dtse dtsh dtsl dtsx dtsy " +
    "samr sawb mha1 mha2 mhm1 mhm2 iamf twos sowt ipcm fpcm pcm speex"
  ).split(" "),
);

const textCodecs: ReadonlySet<string> = new Set(
  "stpp wvtt tx3g c608 c708 eia608 cea608 cea708 ttml vtt webvtt".split(" "),
);
