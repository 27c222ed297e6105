import { createSubtitles } from "../../../manifests/manifest.ts";
import type { PageInfo } from "../../../model/page-info.ts";
import { parseDuration, parseQuality } from "../../../parsers/quantities.ts";
import { parseLine, parseLanguage } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { names, properties, type Property } from "../lexicon/words.ts";
import { type Data, onceForEach, readTexts } from "../scripts/data.ts";
import { exclusionOfName } from "./names.ts";

/** What the data says about a medium. */
interface Item {
  titles: string[];
  /** All texts among the item's own fields. */
  texts: string[];
  ids: string[];
  urls: string[];
  /** Seconds. */
  duration: number | null;
}

/** How many objects may describe a medium: its own and those around it, up to the element of a list. */
const maxLevels = 3;
const maxTexts = 20;
const maxTracks = 100;

const maxLabelLength = 30;

const trackKinds = new Set(["captions", "subtitles"]);

/**
 * Describes a medium. Titles, ids and URLs of the objects around it count up to the first title, the duration beyond it too.
 */
export function describeItem(item: Data): Item {
  const levels = levelsOf(item);
  const own: Data[] = [];
  const titles: string[] = [];
  for (const data of levels) {
    own.push(data);
    titles.push(...titlesOf(data));
    // Beyond a title, or a name such as `next`, an object may be about another medium.
    if (titles.length > 0 || exclusionOfName(data.name) !== "none") break;
  }
  return {
    titles,
    texts: item.fields.flatMap(({ value }) => (typeof value === "string" ? value : [])),
    ids: own.flatMap(idsOf),
    urls: own.flatMap(pageUrlsOf),
    duration: durationOf(item),
  };
}

/** Returns the duration that is stated of a medium, seconds. */
export function durationOf(item: Data): number | null {
  const durations = levelsOf(item).map(ownDurationOf);
  return durations.find((duration) => duration !== null) ?? null;
}

/** Returns what an object calls itself, without labels of a variant such as `720p` or `MP3 Audio`. */
export const titlesOf = onceForEach((data) => textsNamed(data, "title").filter((title) => !isLabel(title)));
const idsOf = onceForEach((data) => textsNamed(data, "id"));
const pageUrlsOf = onceForEach((data) => textsNamed(data, "pageUrl"));

function isLabel(title: string): boolean {
  if (title.length > maxLabelLength) return false;
  if (parseQuality(title) !== null || names.has(title, "quality")) return true;
  return names.has(title, "fileFormat") && !title.includes(".");
}

/** Returns the pictures of a medium, as written. */
export function postersOf(item: Data): string[] {
  return levelsOf(item).flatMap((data) => textsNamed(data, "poster"));
}

/** Returns the captions and subtitles of a medium by language, `und` if none is stated. */
export function subtitlesOf(item: Data, base: URL): PageInfo["subtitles"] {
  const found = createSubtitles();
  for (const track of levelsOf(item).flatMap(tracksIn).slice(0, maxTracks)) {
    const { trackUrl, trackKind, trackLanguage, trackLabel } = readTexts(track, [
      "trackUrl",
      "trackKind",
      "trackLanguage",
      "trackLabel",
    ]);
    const url = tryParseUrl(trackUrl, base);
    const ext = /\.(vtt|webvtt|srt|ttml|dfxp|ass|ssa|xml|m3u8)$/i.exec(url?.pathname ?? "")?.[1];
    const isFile = ext !== undefined && ext.toLowerCase() !== "m3u8";
    const isText = trackKind === undefined ? isFile : trackKinds.has(trackKind.toLowerCase());
    if (url === null || !isText) continue;
    const subtitle = { url: url.href, ext: ext?.toLowerCase() ?? "vtt", name: parseLine(trackLabel) };
    found.add(parseLanguage(trackLanguage), subtitle);
  }
  return found.record();
}

function tracksIn({ fields }: Data): Data[] {
  return fields.flatMap(({ key, value }) => {
    if (typeof value === "string" || !names.has(key, "track")) return [];
    return value.fields.flatMap((each) => (typeof each.value === "string" ? [] : [each.value]));
  });
}

/** Returns the item and the enclosing objects that describe it too, innermost first. */
function levelsOf(item: Data): Data[] {
  const levels = [item];
  let data = item;
  while (levels.length < maxLevels && data.parent !== null) {
    if (data.kind === "block" || data.parent.kind !== "object") break;
    data = data.parent;
    levels.push(data);
  }
  return levels;
}

/** Returns the texts of the fields that state a property; of an array the first one, of an object its URL. */
function textsNamed({ fields }: Data, property: Property): string[] {
  const texts: string[] = [];
  for (const { key, value } of fields) {
    if (texts.length === maxTexts) break;
    if (!properties.has(key, property)) continue;
    const first = typeof value === "string" ? value : value.fields[0]?.value;
    if (typeof first === "string" && first !== "") texts.push(first);
  }
  return texts;
}

/** A number from here on (5.5 h in seconds) is of milliseconds, unless its name says seconds. */
const minMilliseconds = 20_000;

function isDurationName(key: string): boolean {
  return properties.has(key, "duration") && !names.has(key, "scriptTime") && exclusionOfName(key) === "none";
}

/** Returns the duration that an object states itself, seconds. */
export const ownDurationOf = onceForEach(({ fields }): number | null => {
  for (const { key, value } of fields) {
    if (typeof value !== "string" || !isDurationName(key)) continue;
    const isLong = Number(value) >= minMilliseconds && !properties.has(key, "seconds");
    const isMs = isLong || properties.has(key, "milliseconds");
    const duration = parseDuration(isMs ? String(Number(value) / 1_000) : value);
    if (duration !== null) return duration;
  }
  return null;
});
