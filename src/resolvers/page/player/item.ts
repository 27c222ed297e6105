import type { PageInfo } from "../../../model/page-info.ts";
import { parseDuration } from "../../../parsers/duration.ts";
import { parseLanguage } from "../../../parsers/language.ts";
import { parseQuality } from "../../../parsers/quality.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { firstText } from "./beside.ts";
import type { Data } from "./data.ts";
import { type Exclusion, exclusionOfName } from "./names.ts";

/** What the data says about a medium. */
export interface Item {
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

const titleName =
  /(?:tit(?:le|el|re|ulo|olo)|headline)s?$|^(?:video|media|clip)?_?(?:name|caption)$/i;
const idName = /(?:^|_|[a-z])id$|guid$|slug$|^(?:key|pk|v|code|hash|short_?code)$/i;
const pageName = /^(?:(?:page|web_?page|canonical|share|perma)?_?(?:ur[li]|link)|permalink|href)$/i;
const durationName = /duration|^len(?:gth)?$|^run_?time$/i;
/** Names of durations of what a page's script does, not of a medium. */
const otherDuration = /skip|fade|anim|transition|slide|toast|timeout|delay|cache|min|max/i;

/**
 * Describes a medium. Titles, ids and URLs of the objects around it count up to the first title, the duration beyond it too.
 * `exclusionOf` tells why a name excludes a medium.
 */
export function describeItem(item: Data, exclusionOf: (name: string) => Exclusion): Item {
  const levels = levelsOf(item);
  const own: Data[] = [];
  const titles: string[] = [];
  for (const data of levels) {
    own.push(data);
    titles.push(...titlesOf(data));
    // Beyond a title, or a name such as `next`, an object may be about another medium.
    if (titles.length > 0 || exclusionOf(data.name) !== "none") break;
  }
  const texts = (name: RegExp) => own.flatMap((data) => textsNamed(data, name));
  return {
    titles,
    texts: item.fields.flatMap(({ value }) => (typeof value === "string" ? value : [])),
    ids: texts(idName),
    urls: texts(pageName),
    duration: durationOf(item),
  };
}

/** Returns the duration that is stated of a medium, seconds. */
export function durationOf(item: Data): number | null {
  for (const data of levelsOf(item)) {
    const duration = ownDurationOf(data);
    if (duration !== null) return duration;
  }
  return null;
}

/** Returns what an object calls itself, without labels of a variant such as `720p` or `MP3 Audio`. */
export function titlesOf(data: Data): string[] {
  return textsNamed(data, titleName).filter((title) => !isLabel(title));
}

function isLabel(title: string): boolean {
  if (title.length > 30) return false;
  return (
    parseQuality(title) !== null ||
    /^(?:hd|sd|uhd|hq|lq|low|medium|high|auto|default|original|source|mobile|desktop)$/i.test(
      title,
    ) ||
    /(?:^|[\s-])(?:mp[34]|m4[av]|aac|mpeg|ogg|opus|webm|hls|dash|flac)(?:[\s-]|$)/i.test(title)
  );
}

/** Returns the pictures of a medium, as written. */
export function postersOf(item: Data): string[] {
  return levelsOf(item).flatMap((data) =>
    textsNamed(
      data,
      /^(?:poster|image|thumb|still|preview_?image|splash)(?:nail)?_?(?:ur[li]|src)?$/i,
    ),
  );
}

/** Returns the captions and subtitles of a medium by language, `und` if none is stated. */
export function subtitlesOf(item: Data, base: URL): PageInfo["subtitles"] {
  const byLanguage = new Map<string, PageInfo["subtitles"][string]>();
  for (const track of levelsOf(item).flatMap(tracksIn).slice(0, maxTracks)) {
    const url = tryParseUrl(firstText(track, /^(?:file|src|ur[li]|href)$/i), base);
    const kind = firstText(track, /^kind$/i) ?? "captions";
    const ext = /\.(vtt|webvtt|srt|ttml|dfxp|ass|ssa|xml)$/i.exec(url?.pathname ?? "")?.[1];
    if (url === null || !/^(?:captions|subtitles)$/i.test(kind)) continue;
    if (ext === undefined && firstText(track, /^kind$/i) === null) continue;
    const language =
      parseLanguage(firstText(track, /^(?:src_?lang|lang|language|code)$/i)) ?? "und";
    const name = parseLine(firstText(track, /^(?:label|name|title)$/i));
    const listed = byLanguage.get(language) ?? [];
    if (listed.some((each) => each.url === url.href)) continue;
    byLanguage.set(language, [
      ...listed,
      { url: url.href, ext: ext?.toLowerCase() ?? "vtt", name },
    ]);
  }
  return Object.fromEntries(byLanguage);
}

function tracksIn({ fields }: Data): Data[] {
  return fields.flatMap(({ key, value }) => {
    if (typeof value === "string" || !/track|caption|subtitle/i.test(key)) return [];
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

/** Returns the texts of the fields whose names match; of an array the first one, of an object its URL. */
function textsNamed({ fields }: Data, name: RegExp): string[] {
  const texts: string[] = [];
  for (const { key, value } of fields) {
    if (texts.length === maxTexts) break;
    if (!name.test(key)) continue;
    const first = typeof value === "string" ? value : value.fields[0]?.value;
    if (typeof first === "string" && first !== "") texts.push(first);
  }
  return texts;
}

/** A number from here on (5.5 h in seconds) is of milliseconds, unless its name says seconds. */
const minMilliseconds = 20_000;

function isDurationName(key: string): boolean {
  return durationName.test(key) && !otherDuration.test(key) && exclusionOfName(key) === "none";
}

/** Returns the duration that an object states itself, seconds. */
export function ownDurationOf({ fields }: Data): number | null {
  for (const { key, value } of fields) {
    if (typeof value !== "string" || !isDurationName(key)) continue;
    const isLong = Number(value) >= minMilliseconds && !/sec/i.test(key);
    const isMs = isLong || /ms$|milli/i.test(key);
    const duration = parseDuration(isMs ? String(Number(value) / 1_000) : value);
    if (duration !== null) return duration;
  }
  return null;
}
