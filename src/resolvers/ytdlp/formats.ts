import { setImmediate } from "node:timers/promises";
import { isFieldValue, siteHeaderNames } from "../../net/http/site-headers.ts";
import type { DownloadFormat, Format, Fragment } from "../../model/page-info.ts";
import { addNames, type ListedAudio } from "../../manifests/track-name.ts";
import { parseLine, parseLanguage } from "../../parsers/text.ts";
import { mediaTypeOf } from "../../parsers/media-type.ts";
import { tryParseUrl } from "../../parsers/url.ts";
import { asAmount, asCount, asObject, asList, asText, type JsonObject } from "../../parsers/json-values.ts";

/** A format of yt-dlp with what only its choice needs. */
export interface ListedFormat extends DownloadFormat {
  /** Above 0: the language that the page is about; below -1: a variant for few, such as descriptive audio. */
  languagePreference: number;
  /** Its note says that its audio is dubbed. */
  isDub: boolean;
}

/** yt-dlp's protocols that the engine can fetch. */
const protocols: Readonly<Record<string, Format["protocol"]>> = {
  http: "https",
  https: "https",
  m3u8: "m3u8",
  m3u8_native: "m3u8",
  http_dash_segments: "dash",
};

/** Fields of a format that has more to it than its URL; only yt-dlp itself can download it. */
const demandsOfYtDlp =
  "request_data hls_media_playlist_data hls_aes extra_param_to_segment_url extra_param_to_key_url".split(" ");

/** yt-dlp lists the worst first: the last ones are read. */
const maxFormats = 2_000;
const maxFragments = 500_000;
const minChunkBytes = 64 * 1024;
/** So many are read in a few milliseconds, after which others may use the thread. */
const formatsPerStep = 50;
const fragmentsPerStep = 500;

/**
 * Reads the formats of an info dict, in yt-dlp's order reversed: the best first. Leaves out those that the
 * engine cannot download, storyboards, lists of media (M3U, PLS), and those with an invalid URL. A dict without `formats` that has a URL
 * is a format itself. `manifest_url` of a DASH format is that of its manifest; without one it has
 * `fragments`.
 *
 * A `format_id` is yt-dlp's; it is not unique yet. Reads at most 500,000 fragments, and of each format only the
 * first unless `allFragments`. Rejects with `signal.reason`.
 */
export async function readFormats(
  info: JsonObject,
  base: URL,
  { allFragments, signal }: { allFragments: boolean; signal: AbortSignal },
): Promise<ListedFormat[]> {
  const listed = "formats" in info ? asList(info["formats"]) : [info];
  const formats: ListedFormat[] = [];
  const named: ListedAudio[] = [];
  let remaining = maxFragments;
  for (const [index, each] of listed.slice(-maxFormats).toReversed().entries()) {
    if (index % formatsPerStep === formatsPerStep - 1) await pause(signal);
    const dict = asObject(each);
    if (demandsOfYtDlp.some((name) => Boolean(dict[name] ?? info[name]))) continue;
    const format = readFormat(dict, base);
    if (format === null) continue;
    if (format.protocol === "dash") {
      const fragments = await readFragments(dict, base, allFragments ? remaining + 1 : 1, signal);
      if (fragments.length > remaining) continue;
      if (allFragments) remaining -= fragments.length;
      if (fragments.length > 0) format.fragments = fragments;
      else if (format.manifest_url === null) continue;
    }
    formats.push(format);
    named.push(...namedAudioOf(format, noteOf(dict)));
  }
  addNames(named);
  return formats;
}

/** The id of audio that HLS lists is the name of its group and its own name, which is its note too. */
function namedAudioOf(audio: ListedFormat, note: string): ListedAudio[] {
  const name = parseLine(note);
  const end = `-${note.replaceAll(/[\s,/+[\]()]/g, "_")}`;
  const isListed = audio.protocol === "m3u8" && audio.vcodec === "none" && audio.format_id.endsWith(end);
  return isListed ? [{ audio, name, group: `${audio.manifest_url} ${audio.format_id.slice(0, -end.length)}` }] : [];
}

function readFormat(dict: JsonObject, base: URL): ListedFormat | null {
  const named = asText(dict["protocol"]) ?? "";
  const protocol = Object.hasOwn(protocols, named) ? protocols[named] : undefined;
  const url = tryParseUrl(asText(dict["url"]), base);
  const { vcodec, acodec } = readCodecs(dict);
  const isPicture = vcodec === "none" && acodec === "none";
  // A list of media, which the generic extractor takes for a file: the record of the page says so.
  const isList = protocol === "https" && (dict["ext"] === "m3u" || dict["ext"] === "pls");
  if (protocol === undefined || url === null || isPicture || isList) return null;
  const manifest = tryParseUrl(asText(dict["manifest_url"]), base);
  const headers = readHeaders(dict["http_headers"]);
  const cookies = readCookies(dict["cookies"]);
  const chunkSize = asCount(asObject(dict["downloader_options"])["http_chunk_size"]) ?? 0;
  return {
    format_id: asText(dict["format_id"]) || protocol,
    url: url.href,
    manifest_url: manifestUrlOf(protocol, url, manifest),
    protocol,
    ext: readExt(dict["ext"]),
    mime_type: null,
    width: asCount(dict["width"]),
    height: asCount(dict["height"]),
    fps: asAmount(dict["fps"]),
    vcodec,
    acodec,
    tbr: asAmount(dict["tbr"]),
    ...readSizes(dict),
    language: parseLanguage(asText(dict["language"])),
    has_drm: dict["has_drm"] === true,
    ...(Object.keys(headers).length > 0 && { http_headers: headers }),
    ...(protocol === "https" && chunkSize >= minChunkBytes && { http_chunk_size: chunkSize }),
    ...(cookies !== null && { cookies }),
    languagePreference: languagePreferenceOf(dict, vcodec),
    isDub: /\bdub(?:bed)?\b/i.test(noteOf(dict)),
  };
}

/** Returns what a format says of itself for people. */
function noteOf(dict: JsonObject): string {
  return asText(dict["format_note"])?.slice(0, maxValueLength) ?? "";
}

/** Extractors that know no preference may state it in the note for people. */
function languagePreferenceOf(dict: JsonObject, vcodec: string | null): number {
  const preference = dict["language_preference"];
  const stated = (typeof preference === "number" && preference) || -1;
  if (stated !== -1 || vcodec !== "none") return stated;
  const note = noteOf(dict);
  if (/\b(?:descriptive|description|described)\b/i.test(note)) return -10;
  return /\boriginal\b/i.test(note) && asText(dict["language"]) ? 10 : stated;
}

function readSizes(dict: JsonObject): Pick<ListedFormat, "filesize" | "filesize_approx"> {
  const filesize = asCount(dict["filesize"]);
  const approximate = asCount(Math.round(asAmount(dict["filesize_approx"]) ?? 0));
  return { filesize, filesize_approx: filesize === null ? approximate : null };
}

/** A playlist that no other lists is its own manifest; a progressive file has none. */
function manifestUrlOf(protocol: Format["protocol"], url: URL, manifest: URL | null) {
  if (protocol === "https") return null;
  return manifest?.href ?? (protocol === "m3u8" ? url.href : null);
}

function readCodecs(dict: JsonObject): Pick<Format, "vcodec" | "acodec"> {
  const codec = (value: unknown) => /^[\w.,+ -]{1,100}$/.exec(asText(value) ?? "")?.[0] ?? null;
  const ext = readExt(dict["ext"]);
  const isAudioFile = ext !== null && mediaTypeOf(null, new URL(`file:///a.${ext}`)).kind === "audio";
  return { vcodec: codec(dict["vcodec"]) ?? (isAudioFile ? "none" : null), acodec: codec(dict["acodec"]) };
}

/** Returns a file name extension in lower case; `null` for anything else and for yt-dlp's `unknown_video`. */
export function readExt(value: unknown): string | null {
  return /^[a-z\d]{1,10}$/i.exec(asText(value) ?? "")?.[0]?.toLowerCase() ?? null;
}

/** Reads the first lines of the fragments, which have duration and URL. Returns none if one has no valid URL: a part is no medium. */
async function readFragments(dict: JsonObject, base: URL, most: number, signal: AbortSignal): Promise<Fragment[]> {
  const lines = asText(dict["fragments"]) ?? "";
  const folder = tryParseUrl(asText(dict["fragment_base_url"]), base) ?? base;
  const read: Fragment[] = [];
  for (let at = 0; at < lines.length && read.length < most;) {
    if (read.length % fragmentsPerStep === fragmentsPerStep - 1) await pause(signal);
    const end = endOf(lines, "\n", at);
    const space = endOf(lines, " ", at);
    const url = tryParseUrl(lines.slice(space + 1, end), folder);
    if (url === null) return [];
    read.push({ url: url.href, duration: asAmount(Number(lines.slice(at, space))) });
    at = end + 1;
  }
  return read;
}

/** Rejects with `signal.reason`. */
async function pause(signal: AbortSignal): Promise<void> {
  await setImmediate();
  signal.throwIfAborted();
}

/** Returns where the next `mark` is; the end of the text if there is none. */
function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at === -1 ? text.length : at;
}

/** Thousands of formats may repeat a value. */
const maxValueLength = 2_000;
const maxCookiesLength = 16 * 1024;

/** Returns the request headers that a format demands. */
function readHeaders(headers: unknown): Record<string, string> {
  const fields = Object.entries(asObject(headers)).flatMap(([written, value]) => {
    const name = siteHeaderNames.get(written.toLowerCase());
    const text = asText(value)?.trim() ?? "";
    const isDemand = name !== undefined && text !== "" && isFieldValue(text, maxValueLength);
    return isDemand ? [[name, text] as const] : [];
  });
  return Object.fromEntries(fields);
}

/** Returns the cookies of a format as yt-dlp joins them; `null` if there are none or they are invalid. */
function readCookies(cookies: unknown): string | null {
  const text = asText(cookies) ?? "";
  return text !== "" && isFieldValue(text, maxCookiesLength) ? text : null;
}

/**
 * Returns the formats with what yt-dlp's preferences of languages say: separate audio of the highest one above 0, and other audio in
 * that language, is the original; in other languages, or if its note says so, it is dubbed; below −1 it is a description. What a manifest says of audio counts first.
 * Video with dubbed audio is another version, as are dubbed audio and descriptions.
 */
export function withLanguageRoles(formats: readonly ListedFormat[]): ListedFormat[] {
  const best = Math.max(...formats.map(({ languagePreference }) => languagePreference));
  const preferred = formats.filter(({ languagePreference }) => languagePreference === best);
  const original = new Set(best > 0 ? preferred.map(({ language }) => language) : []);
  return formats.map((format) => {
    const { vcodec, acodec, language, languagePreference } = format;
    const isDub = format.isDub || (original.size > 0 && language !== null && !original.has(language));
    if (vcodec !== "none") return isDub && acodec !== "none" ? { ...format, preference: -1 } : format;
    if (format.audio_role) return format;
    if (languagePreference < -1) return { ...format, audio_role: "description", preference: -2 };
    if (isDub) return { ...format, audio_role: "dub", preference: -1 };
    return { ...format, audio_role: original.has(language) ? "original" : null };
  });
}

/** Returns the language that the page is about, as yt-dlp's preference says. */
export function languageOf(formats: readonly ListedFormat[]): string | null {
  const preferred = formats
    .filter(({ language, languagePreference }) => language !== null && languagePreference > 0)
    .toSorted((a, b) => b.languagePreference - a.languagePreference);
  return preferred[0]?.language ?? null;
}
