import type { Download, WantedSubtitles } from "../../engines/engine.ts";
import { createLanguageFinder } from "../../remux/language.ts";
import type { FileWarning } from "../../model/file-warnings.ts";
import type { Subtitle } from "../../model/entry.ts";
import type { PageInfo } from "../../model/page-info.ts";
import type { TaskOptions } from "../../model/task.ts";
import { maxTagLength, nameSome } from "./choose-audio.ts";

interface ChosenSubtitles {
  wanted: readonly WantedSubtitles[];
  /** Languages of which none are listed. */
  missing: readonly string[];
  listed: readonly string[];
  /** How many are over the limit. */
  left: number;
}

/** Subtitles of a task. */
const maxTracks = 60;

/** What can be read, that which loses least first. */
const readable = ["vtt", "m3u8", "ttml", "dfxp", "xml", "srt", "ass", "ssa", "lrc"];

/**
 * Chooses the subtitles that a task's options ask for, at most 60: for each language one of each role and name that is listed. Tags
 * stand for listed ones as `createLanguageFinder` says. Forced ones do not replace others. Automatic captions are for languages in which nobody wrote
 * other subtitles than forced ones, or none that can be read.
 */
export function chooseSubtitles(page: PageInfo, { subtitles = false }: TaskOptions): ChosenSubtitles {
  if (subtitles === false) return { wanted: [], missing: [], listed: [], left: 0 };
  const { languages, automatic = false } = subtitles === true ? { languages: "all" as const } : subtitles;
  const written = tracksOf(page.subtitles, false);
  const findWritten = createFinder(written);
  const findFull = createFinder(new Map([...written].filter(([, tracks]) => tracks.some(isFull))));
  const generated = tracksOf(automatic ? (page.automatic_captions ?? {}) : {}, true);
  const findGenerated = createFinder(generated);
  const listed = [...new Set([...written.keys(), ...generated.keys()])];
  const wanted = new Set<WantedSubtitles>();
  const missing: string[] = [];
  for (const language of languages === "all" ? listed : languages) {
    const automatics = findGenerated(language);
    const own = findWritten(language) ?? [];
    const found = own.some(isFull) ? own : [...own, ...(findFull(language) ?? automatics ?? [])];
    if (found.length === 0) missing.push(language);
    for (const track of found) {
      if (!track.automatic && isFull(track) && automatics !== undefined) track.otherwise = automatics;
      wanted.add(track);
    }
  }
  const left = Math.max(0, wanted.size - maxTracks);
  return { wanted: [...wanted].slice(0, maxTracks), missing, listed, left };
}

/** Returns the languages in which tracks of the media become subtitles, too, if the page lists none there. */
export function ownLanguages({ subtitles = false }: TaskOptions): readonly string[] | "all" {
  if (subtitles === false) return [];
  return subtitles === true ? "all" : subtitles.languages;
}

/** Warns of subtitles that were asked for and are neither listed nor text within the media. */
export function warnOfMissingSubtitles(
  { wanted, missing, listed, left }: ChosenSubtitles,
  options: TaskOptions,
  { ownSubtitles }: Pick<Download, "ownSubtitles">,
): FileWarning[] {
  const warnings: string[] = [];
  const texts = ownSubtitles.filter(({ isText }) => isText).map(({ language }) => language);
  const findText = createLanguageFinder(texts);
  for (const language of missing.filter((tag) => findText(tag) < 0)) {
    const known = [...new Set([...listed, ...texts.filter((tag) => tag !== null)])];
    const others = known.length === 0 ? ", and no others" : `; it lists ${nameSome(known)}`;
    warnings.push(`the page lists no subtitles in "${language}"${others}`);
  }
  if (left > 0) warnings.push(`${left} further subtitles are left out: a task has at most ${maxTracks}`);
  const asked = ownLanguages(options);
  const isAsked = (tag: string) => asked === "all" || asked.some((each) => createLanguageFinder([tag])(each) >= 0);
  const taken = [...wanted.map(({ language }) => language), ...texts];
  const findTaken = createLanguageFinder(taken);
  const pictures = ownSubtitles.filter(({ language, isText }) => {
    if (isText || asked.length === 0) return false;
    return language === null ? !taken.includes(null) : isAsked(language) && findTaken(language) < 0;
  });
  const named = pictures.map(
    ({ language, codec }) => `${(language ?? "an unknown language").slice(0, maxTagLength)} (${codec})`,
  );
  if (named.length > 0) {
    const rule = "which cannot be read: only a file as published has them";
    warnings.push(`the media have subtitles of their own in ${nameSome(named)}, ${rule}`);
  }
  return warnings.map((message) => ({ code: "subtitles_missing", message }));
}

const isFull = ({ role }: WantedSubtitles): boolean => role !== "forced";

type Tracks = ReadonlyMap<string, readonly WantedSubtitles[]>;

/** Returns them by their tags, without those that cannot be read if others can: what a name says may be wrong. */
function tracksOf(listed: PageInfo["subtitles"], automatic: boolean): Tracks {
  const entries = Object.entries(listed).map(([tag, listings]) => {
    const byRole = Map.groupBy(listings, ({ role = "subtitles" }) => role);
    const language = tag === "und" ? null : tag;
    const tracks = [...byRole].flatMap(([role, same]) =>
      [...groupByName(same)].map(([telling, versions]): WantedSubtitles => {
        const name = telling ?? versions.find((each) => each.name !== null)?.name ?? "";
        return { language, name, role, automatic, listings: readableOf(versions) };
      }),
    );
    return [tag, tracks] as const;
  });
  return new Map(entries.filter(([, tracks]) => tracks.length > 0));
}

/**
 * Returns those of one name together if the same format is listed with several names, as "English" and "English: commentary": other
 * subtitles. What has another name, or none, is another format of the first. All together (`undefined`) if names say nothing, as "WebVTT"
 * and "SubRip".
 */
function groupByName(listings: readonly Subtitle[]): Map<string | undefined, Subtitle[]> {
  const formats = [...Map.groupBy(listings, ({ ext }) => ext).values()];
  const names = formats.map((same) => new Set(same.flatMap(({ name }) => name ?? [])));
  const telling = new Set(names.filter(({ size }) => size > 1).flatMap((several) => [...several]));
  const [first] = telling;
  const versionOf = ({ name }: Subtitle) => (name !== null && telling.has(name) ? name : first);
  return Map.groupBy(listings, versionOf);
}

const rankOf = ({ ext }: Subtitle): number => readable.indexOf(ext ?? "vtt");

function readableOf(listings: readonly Subtitle[]): readonly Subtitle[] {
  const found = listings.filter((listing) => rankOf(listing) >= 0);
  return found.length > 0 ? found.toSorted((a, b) => rankOf(a) - rankOf(b)) : listings;
}

/** Returns a function that finds the tracks in a language. */
function createFinder(tracks: Tracks): (asked: string) => readonly WantedSubtitles[] | undefined {
  const tags = [...tracks.keys()];
  const find = createLanguageFinder(tags);
  return (asked) => {
    const found = tags[find(asked)];
    return found === undefined ? undefined : tracks.get(found);
  };
}
