import type { Format, PageInfo, TrackRole } from "./page-info.ts";

/** Whether it has, or may have, video: `"none"` says that there is no such stream; `null`, unknown, does not. */
export const hasVideo = ({ vcodec }: Pick<Format, "vcodec">): boolean => vcodec !== "none";
/** As `hasVideo`, of audio. */
export const hasAudio = ({ acodec }: Pick<Format, "acodec">): boolean => acodec !== "none";

/**
 * Codecs that few players decode (RFC 6381): MPEG-H 3D Audio, AC-4, DTS, VVC, EVC, LCEVC, and Dolby Vision of profile 5, whose
 * colours are wrong in others.
 */
const rareCodec = /^(?:mh[am][12]|ac-4|dts[cehlxy]|vvc1|vvi1|evc1|lvc1|dv(?:h1|he)\.05)(?:\.|$)/i;

/** Whether few players decode one of its codecs. */
export const isRare = ({ vcodec, acodec }: Format): boolean =>
  rareCodec.test(vcodec ?? "") || rareCodec.test(acodec ?? "");

/** Video codecs that a client may prefer. */
export const videoCodecs = ["h264", "h265", "vp8", "vp9", "av1"] as const;
export type VideoCodec = (typeof videoCodecs)[number];

/** Names of RFC 6381 and of yt-dlp. Players of H.265 show wrong colours of Dolby Vision of profile 5. */
const namesOfCodecs: Record<VideoCodec, RegExp> = {
  h264: /^(?:avc|[hx]264|dva[1v])/i,
  h265: /^(?:h(?:ev|vc)|[hx]265|dv(?:h1|he)(?!\.05))/i,
  vp8: /^vp0?8/i,
  vp9: /^vp0?9/i,
  av1: /^(?:av0?1|dav1)/i,
};

/** Those that WebM may hold. */
const webmCodecs: ReadonlySet<VideoCodec> = new Set(["vp8", "vp9", "av1"]);

/** Returns the place of a video codec among those that are preferred; after them, one that may be one of them comes before others. */
function placeOf(format: Format, preferred: readonly VideoCodec[]): number {
  const { vcodec } = format;
  if (preferred.length === 0) return 0;
  if (vcodec === null) {
    const isPossible = !isWebm(format) || preferred.some((codec) => webmCodecs.has(codec));
    return isPossible ? preferred.length : preferred.length + 1;
  }
  const place = preferred.findIndex((codec) => namesOfCodecs[codec].test(vcodec));
  return place === -1 ? preferred.length + 1 : place;
}

/**
 * Sorts the better format first: with video, then the programme, then in codecs that are preferred, then in those that most players decode, then
 * higher, then of higher bit rate.
 */
export function byQuality(a: Format, b: Format, preferred: readonly VideoCodec[] = []): number {
  return (
    Number(hasVideo(b)) - Number(hasVideo(a)) ||
    (b.preference ?? 0) - (a.preference ?? 0) ||
    placeOf(a, preferred) - placeOf(b, preferred) ||
    Number(isRare(a)) - Number(isRare(b)) ||
    (b.height ?? 0) - (a.height ?? 0) ||
    (b.tbr ?? 0) - (a.tbr ?? 0)
  );
}

/** Roles that the programme may have in another language. */
const languageRoles: ReadonlySet<TrackRole> = new Set(["main", "alternate", "dub"]);

/** Whether audio is for all listeners, not a description or the like. */
export function isProgramme({
  roles = [],
  audio_role,
}: Pick<Format, "audio_role"> & { roles?: readonly TrackRole[] }): boolean {
  return roles.every((role) => languageRoles.has(role)) && audio_role !== "description" && audio_role !== "commentary";
}

/** Whether audio is of the group that a variant of HLS names, and in a codec that most players decode: others are only for some of them. */
export function isOfGroup(audio: Format, { audio_group }: Format): boolean {
  return audio.audio_group === audio_group && !isRare(audio);
}

/** Returns the audio that the site says is the original; all of it if it does not say. */
function originalsOf(formats: readonly Format[]): readonly Format[] {
  const originals = formats.filter(({ audio_role }) => audio_role === "original");
  return originals.length > 0 ? originals : formats;
}

/** What decides which of the separate audio is downloaded: what the site says of it, or the language of the page; `null`: its order. */
export function audioDecision({
  formats,
  language,
}: Pick<PageInfo, "formats" | "language">): "role" | "language" | null {
  const audio = formats.filter((format) => !hasVideo(format) && hasAudio(format));
  if (audio.some(({ audio_role }) => audio_role === "original")) return "role";
  const hasSeveral = new Set(audio.map((format) => format.language)).size > 1;
  const isDecided = language !== null && audio.some((format) => isSameLanguage(format.language, language));
  return hasSeveral && isDecided ? "language" : null;
}

/**
 * Returns the first format in this language that is not for some listeners only, such as a description; else the first of all; `null` if there
 * is none. If the site says which formats are the original, only these count.
 */
export function bestAudio(formats: readonly Format[], language: string | null): Format | null {
  const originals = originalsOf(formats);
  const inLanguage = originals.find(
    (format) => language !== null && isSameLanguage(format.language, language) && isProgramme(format),
  );
  return inLanguage ?? originals[0] ?? null;
}

/**
 * Returns a function that finds the separate audio of one of the page's formats: in the same manifest,
 * also for a format that may have no audio, else, if it certainly has none, anywhere on the page; `null` if its audio is in the format or
 * missing. Ignores audio with DRM. Prefers audio for the same container, then as `bestAudio` does; then of the same language and purpose
 * that of the format's `audio_group`, in a codec that most players decode.
 */
export function createAudioFinder({
  formats,
  language,
}: Pick<PageInfo, "formats" | "language">): (format: Format) => Format | null {
  const audio = formats.filter((format) => !hasVideo(format) && hasAudio(format) && !format.has_drm);
  const anywhere = bestByContainer(audio, language);
  const byManifest = new Map(
    Map.groupBy(audio, ({ manifest_url }) => manifest_url)
      .entries()
      .map(([url, listed]) => [url, bestByContainer(listed, language)]),
  );
  const keyOf = (each: Format, { audio_group }: Format) =>
    JSON.stringify([each.manifest_url, audio_group, isWebm(each), purposeKey(each)]);
  const byGroup = Map.groupBy(
    audio.filter((each) => !isRare(each)),
    (each) => keyOf(each, each),
  );
  return (format) => {
    const isCertain = !hasAudio(format);
    const { manifest_url } = format;
    const isPossible = format.acodec === null && (format.protocol !== "https" || manifest_url !== null);
    if (!hasVideo(format) || (!isCertain && !isPossible)) return null;
    const own = manifest_url === null ? undefined : byManifest.get(manifest_url);
    const best = (own ?? (isCertain ? anywhere : undefined))?.[isWebm(format) ? "webm" : "mp4"] ?? null;
    if (best === null || isOfGroup(best, format)) return best;
    const same = byGroup.get(keyOf(best, format)) ?? [];
    return same.find(({ name }) => name === best.name) ?? same[0] ?? best;
  };
}

function bestByContainer(listed: readonly Format[], language: string | null) {
  const audio = originalsOf(listed);
  const any = bestAudio(audio, language);
  const best = (formats: readonly Format[]) => bestAudio(formats, language) ?? any;
  return { webm: best(audio.filter(isWebm)), mp4: best(audio.filter((format) => !isWebm(format))) };
}

/** Whether both fit into one container without re-encoding: WebM with WebM, the rest as MP4. */
export function isMuxable(a: Format, b: Format): boolean {
  return isWebm(a) === isWebm(b);
}

/** Whether its container is WebM, by its extension or media type. */
export function isWebm({ ext, mime_type }: Pick<Format, "ext" | "mime_type">): boolean {
  return ext === "webm" || ext === "weba" || mime_type?.endsWith("/webm") === true;
}

/** Compares primary subtags only: `en-GB` matches `en` (RFC 5646 §2.2.1). */
function isSameLanguage(a: string | null, b: string): boolean {
  return a?.split("-", 1)[0]?.toLowerCase() === b.split("-", 1)[0]?.toLowerCase();
}

/** Returns what is equal of formats in one language and for the same purpose. */
export function purposeKey({
  language,
  roles = [],
  audio_role = null,
}: Pick<Format, "language" | "audio_role"> & { roles?: readonly TrackRole[] }): string {
  const purposes = new Set<string>(roles.filter((role) => role !== "main"));
  if (audio_role === "description" || audio_role === "commentary") purposes.add(audio_role);
  return JSON.stringify([language?.toLowerCase(), [...purposes].toSorted()]);
}

/** Limit of a record's formats. */
const maxFormats = 2_000;

/** Limit of all URLs in a record's formats together, characters. */
const maxUrlLength = 2 * 1024 * 1024;

/**
 * Sorts best first; equal ones keep the page's order. Keeps the best 2,000, and drops the worst if all URLs
 * together exceed 2 Mi characters: each format repeats its manifest's URL, which may be long.
 */
export function bestFormats<F extends Format>(formats: readonly F[]): F[] {
  const sorted = formats.toSorted(byQuality).slice(0, maxFormats);
  let length = 0;
  const end = sorted.findIndex(({ url, manifest_url }) => {
    length += url.length + (manifest_url?.length ?? 0);
    return length > maxUrlLength;
  });
  return end === -1 ? sorted : sorted.slice(0, end);
}
