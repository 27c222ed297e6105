import type { Download, WantedSubtitles } from "../../engines/engine.ts";
import { findLanguage } from "../../remux/language.ts";
import type { FileWarning } from "../../model/file-warnings.ts";
import type { PageInfo, Subtitle } from "../../model/page-info.ts";
import type { TaskOptions } from "../../model/task.ts";
import { maxTagLength, nameSome } from "./choose-audio.ts";

interface ChosenSubtitles {
  wanted: readonly WantedSubtitles[];
  /** What is not listed. */
  warnings: readonly FileWarning[];
}

/** Subtitles of a task. */
const maxTracks = 60;

/** What can be read, that which loses least first. */
const readable = ["vtt", "m3u8", "ttml", "dfxp", "xml", "srt", "ass", "ssa", "lrc"];

/**
 * Chooses the subtitles that a task's options ask for, at most 60: for each language one of each role and name that is listed. A tag
 * stands for itself, else for the first listed tag that begins with it (RFC 4647 §3.3.1), else for the longest listed tag
 * that it begins with (§3.4). Forced ones do not replace others. Automatic captions are for languages in which nobody wrote
 * other subtitles than forced ones, or none that can be read.
 */
export function chooseSubtitles(page: PageInfo, { subtitles = false }: TaskOptions): ChosenSubtitles {
  if (subtitles === false) return { wanted: [], warnings: [] };
  const { languages, automatic = false } = subtitles === true ? { languages: "all" as const } : subtitles;
  const written = tracksOf(page.subtitles, false);
  const full = new Map([...written].filter(([, tracks]) => tracks.some(isFull)));
  const generated = tracksOf(automatic ? (page.automatic_captions ?? {}) : {}, true);
  const listed = [...new Set([...written.keys(), ...generated.keys()])];
  const wanted = new Set<WantedSubtitles>();
  const warnings: FileWarning[] = [];
  for (const language of languages === "all" ? listed : languages) {
    const automatics = find(generated, language);
    const own = find(written, language) ?? [];
    const found = own.some(isFull) ? own : [...own, ...(find(full, language) ?? automatics ?? [])];
    if (found.length === 0) warnings.push(missing(language, listed));
    for (const track of found) {
      if (!track.automatic && isFull(track) && automatics !== undefined) track.otherwise = automatics;
      wanted.add(track);
    }
  }
  const left = wanted.size - maxTracks;
  const message = `${left} further subtitles are left out: a task has at most ${maxTracks}`;
  if (left > 0) warnings.push({ code: "subtitles_missing", message });
  return { wanted: [...wanted].slice(0, maxTracks), warnings };
}

/** Warns of subtitles within the media that were asked for and are not among those that the page lists (`wanted`): they do not become files. */
export function warnOfOwnSubtitles(
  { wanted }: ChosenSubtitles,
  { subtitles = false }: TaskOptions,
  { ownSubtitles }: Pick<Download, "ownSubtitles">,
): FileWarning[] {
  if (subtitles === false) return [];
  const taken = wanted.map(({ language }) => language);
  const asked = subtitles === true || subtitles.languages === "all" ? null : subtitles.languages;
  const isAsked = (tag: string) => asked === null || asked.some((each) => findLanguage(each, [tag]) >= 0);
  const left = ownSubtitles.filter(
    ({ language }) =>
      !(language === null ? taken.includes(null) : !isAsked(language) || findLanguage(language, taken) >= 0),
  );
  if (left.length === 0) return [];
  const named = left.map(
    ({ language, codec }) => `${(language ?? "an unknown language").slice(0, maxTagLength)} (${codec})`,
  );
  const message = `the media have subtitles of their own in ${nameSome(named)}, which do not become files: only a file as published has them`;
  return [{ code: "subtitles_missing", message }];
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

function find(tracks: Tracks, asked: string): readonly WantedSubtitles[] | undefined {
  const tags = [...tracks.keys()];
  const found = tags[findLanguage(asked, tags)];
  return found === undefined ? undefined : tracks.get(found);
}

function missing(language: string, listed: readonly string[]): FileWarning {
  const others = listed.length === 0 ? ", and no others" : `; listed are: ${nameSome(listed)}`;
  const message = `the page lists no subtitles in ${language}${others}`;
  return { code: "subtitles_missing", message };
}
