import type { Download, DownloadJob } from "../../engines/engine.ts";
import { hasAudio, hasVideo, isMuxable, isOfGroup, isProgramme, purposeKey } from "../../model/format-ranking.ts";
import { isLanguage } from "../../remux/audio-choice.ts";
import { createLanguageFinder } from "../../remux/language.ts";
import type { FileWarning } from "../../model/file-warnings.ts";
import type { Format, PageInfo } from "../../model/page-info.ts";
import type { TaskOptions } from "../../model/task.ts";
import type { FormatChoice } from "../../resolvers/choose-format.ts";

interface ChosenAudio {
  tracks: FormatChoice & Pick<DownloadJob, "otherAudio" | "audioLanguages">;
  /** Tags that were asked for and are not listed. */
  unlisted: readonly string[];
  listed: readonly string[];
  /** There is none, because all that is listed has DRM. */
  isProtected: boolean;
}

/** The audio that is chosen if nothing is asked for. */
const original = Symbol("original");

/**
 * Chooses the audio tracks that a task's options ask for, at most 20, in their order: `original` is what the format was chosen with,
 * and comes first; if it is in one stream with the video, also where its language is asked for after others. A language is the best
 * separate audio of the same manifest, else of the page, in that language: its programme rather than a description, in the
 * format's `audio_group` and container rather than another, then of the highest bit rate. Tags stand for
 * listed ones as `createLanguageFinder` says. `all` are all languages and versions. What is not listed may be in the stream of the original; if it is not, the
 * original replaces it.
 */
export function chooseAudio({ formats }: PageInfo, choice: FormatChoice, options: TaskOptions): ChosenAudio {
  const { audio_languages: asked = ["original"] } = options;
  const { versions, versionOf } = versionsOf(formats, choice);
  const own = choice.audio ?? choice.format;
  const wanted = new Set<Format | typeof original>();
  const unlisted: string[] = [];
  const find = createFormatFinder([own, ...versions]);
  const add = (format: Format) => wanted.add(versionOf(format) === versionOf(own) ? original : format);
  for (const name of asked) {
    const found = isLanguage(name) ? find(name) : undefined;
    if (!isLanguage(name)) wanted.add(original);
    else if (found === undefined) unlisted.push(name);
    else add(found);
    if (name === "all") for (const version of versions) add(version);
  }
  if (wanted.size === 0) wanted.add(original);
  const audioLanguages = asked.filter((name) => !isLanguage(name) || unlisted.includes(name));
  const listed = [...new Set([own, ...versions].flatMap(({ language }) => language ?? []))];
  const isSilent = choice.audio === null && !hasAudio(choice.format);
  const about = { unlisted, listed, isProtected: isSilent && formats.some(isProtectedAudio) };
  // Its language may be asked for after another one; in one stream with the video it can only be the first.
  const isWithVideo = choice.audio === null && hasVideo(choice.format);
  const isFirst = isWithVideo || !asked.every(isLanguage);
  const isOriginal = wanted.has(original) && (isFirst || wanted.values().next().value === original);
  const chosen = [...wanted].flatMap((each) => (each !== original ? each : isOriginal ? [] : own));
  const otherAudio = chosen.slice(isOriginal ? 0 : 1, isOriginal ? maxTracks - 1 : maxTracks);
  if (isOriginal) return { tracks: { ...choice, otherAudio, audioLanguages }, ...about };
  return { tracks: { ...replaceAudio(choice, chosen[0]!), otherAudio, audioLanguages }, ...about };
}

const isProtectedAudio = (format: Format): boolean => format.has_drm && hasAudio(format) && !hasVideo(format);

const maxTracks = 20;

/** The audio of a format that has its own is left out. */
function replaceAudio(choice: FormatChoice, audio: Format): FormatChoice {
  const isAudio = choice.audioOnly || !hasVideo(choice.format);
  if (isAudio) return { format: audio, audio: null, audioOnly: false };
  return { ...choice, format: { ...choice.format, acodec: "none" }, audio };
}

/** Returns the best separate audio of each language, purpose and name, the programme first, and what is equal of formats that are one version. */
function versionsOf(formats: readonly Format[], { format }: FormatChoice) {
  const separate = formats.filter((each) => !hasVideo(each) && hasAudio(each) && !each.has_drm);
  const listed = separate.filter(({ manifest_url }) => manifest_url !== null && manifest_url === format.manifest_url);
  const candidates = byPreference(listed.length > 0 ? listed : separate);
  const names = new Map<string, string>();
  for (const each of candidates) {
    const key = purposeKey(each);
    if (each.name !== undefined && !names.has(key)) names.set(key, each.name);
  }
  // Audio without a name is another quality of the first that has one.
  const versionOf = (each: Format) => `${purposeKey(each)} ${each.name ?? names.get(purposeKey(each)) ?? ""}`;
  const same = [...Map.groupBy(candidates, versionOf).values()];
  const best = same.map((qualities) => qualities.toSorted((a, b) => compare(a, b, format))[0]!);
  return { versions: byPreference(best), versionOf };
}

function byPreference(formats: readonly Format[]): Format[] {
  return formats.toSorted((a, b) => (b.preference ?? 0) - (a.preference ?? 0));
}

function compare(a: Format, b: Format, format: Format): number {
  return (
    Number(isOfGroup(b, format)) - Number(isOfGroup(a, format)) ||
    (b.preference ?? 0) - (a.preference ?? 0) ||
    Number(isMuxable(format, b)) - Number(isMuxable(format, a)) ||
    (b.tbr ?? 0) - (a.tbr ?? 0)
  );
}

/**
 * Returns a function that finds a format by its language. A description counts less than the programme in a language that its own stands
 * for: `en` for `en-GB`.
 */
function createFormatFinder(formats: readonly Format[]): (asked: string) => Format | undefined {
  const findAny = finderIn(formats);
  const findProgramme = finderIn(formats.filter(isProgramme));
  return (asked) => {
    const found = findProgramme(asked) ?? findAny(asked);
    return found && (findProgramme(found.language) ?? found);
  };
}

function finderIn(formats: readonly Format[]): (tag: string | null) => Format | undefined {
  const find = createLanguageFinder(formats.map(({ language }) => language));
  return (tag) => (tag === null ? undefined : formats[find(tag)]);
}

/** No language tag is longer (RFC 5646 §4.4.1). */
export const maxTagLength = 35;

/** Warns of languages that are neither listed nor in the media, and names those that are; and if all audio has DRM. */
export function warnOfMissing(
  { unlisted, listed, isProtected }: ChosenAudio,
  { audioLanguages, offeredLanguages }: Pick<Download, "audioLanguages" | "offeredLanguages">,
): FileWarning[] {
  const there = [...new Set([...listed, ...offeredLanguages])];
  const others =
    there.length === 0
      ? "neither the page nor the media name a language"
      : `page and media have ${nameSome(there.map((tag) => tag.slice(0, maxTagLength)))}`;
  const missing = unlisted
    .filter((language) => !audioLanguages.includes(language))
    .map((language) => ({ code: "audio_missing", message: `there is no audio in "${language}": ${others}` }) as const);
  const message = "all audio of the page is DRM protected, the file has none";
  return [...(isProtected ? [{ code: "track_missing", message } as const] : []), ...missing];
}

/** Languages that a warning names. */
const maxNamed = 20;

/** Names the first languages of a list, and says how many more it has. */
export function nameSome(languages: readonly string[]): string {
  const more = languages.length > maxNamed ? ` and ${languages.length - maxNamed} more` : "";
  return languages.slice(0, maxNamed).join(", ") + more;
}
