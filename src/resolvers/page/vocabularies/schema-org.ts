import type { Chapter } from "../../../model/entry.ts";
import type { PageInfo, Thumbnail } from "../../../model/page-info.ts";
import { listChapters } from "../../chapters.ts";
import { parseCount, parseOffset, parsePixels } from "../../../parsers/quantities.ts";
import { parseDate } from "../../../parsers/date.ts";
import { parseKeywords, parseLine, parseProse, parseLanguage } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { createResource, type Metadata, type Resource, thumbnailsAt } from "../metadata.ts";
import { audioTypes } from "./choose-thing.ts";
import {
  durationOf,
  idUrl,
  isA,
  localName,
  maxTypes,
  type Thing,
  textOf,
  textsOf,
  textsWithin,
  thingsOf,
  valuesOf,
} from "../markup/thing.ts";

/** Extracts what a schema.org VideoObject, AudioObject or the like states. `now` decides on live status. */
export function extractMedium(thing: Thing, base: URL, now: Date): Metadata {
  const kind = isA(thing, audioTypes) ? "audio" : "video";
  const uploader = authorOf(thing);
  return {
    site_name: parseLine(textsWithin(thing, "publisher", "name")[0]),
    title: parseLine(textOf(thing, "name", "headline")),
    description: parseProse(textOf(thing, "description")),
    language: parseLanguage(textsWithin(thing, "inlanguage", "alternatename", "name")[0]),
    duration: durationOf(thing),
    uploaded_at: firstDate(thing, "uploaddate", "datepublished", "datecreated"),
    uploader,
    uploader_url: profileUrl(thing, uploader, base),
    view_count: viewCount(thing),
    like_count: interactions(thing, "UserLikes", "LikeAction"),
    live_status: liveStatus(thing, now),
    age_limit: ageLimit(thing),
    thumbnails: thumbnails(thing, base),
    tags: parseKeywords(textsOf(thing, "keywords")),
    ...episode(thing),
    chapters: chapters(thing),
    resources: resources(thing, kind, base),
    media_type: kind,
  };
}

/** Limits of what is looked at for lists, more than a record has. */
const maxPages = 50;
const maxImages = 50;
const maxEncodings = 50;
const maxAuthors = 10;
const maxInteractions = 50;
const maxParts = 5_000;

/** Extracts what schema.org's page types state about the page; of each field, the first of 50 pages that has it. */
export function extractPage(pages: readonly Thing[], base: URL): Metadata {
  const listed = pages.slice(0, maxPages);
  const first = <T>(extract: (page: Thing) => T | null) => firstKnown(listed, extract);
  return {
    site_name: first((page) => parseLine(textsWithin(page, "publisher", "name")[0])),
    title: first((page) => parseLine(textOf(page, "headline", "name"))),
    description: first((page) => parseProse(textOf(page, "description"))),
    language: first((page) => parseLanguage(textOf(page, "inlanguage"))),
    uploaded_at: first((page) => firstDate(page, "datepublished", "datecreated")),
    uploader: first(authorOf),
    thumbnails: listed.flatMap((page) => thumbnails(page, base)),
    tags: parseKeywords(listed.flatMap((page) => textsOf(page, "keywords"))),
    ...onlyEpisode(listed),
  };
}

/** What the only episode among the things of a page states; of several, none is known to be the page's own. */
function onlyEpisode(pages: readonly Thing[]): ReturnType<typeof episode> | undefined {
  const [only, other] = pages.filter(({ types }) => types.some((type) => type.endsWith("Episode")));
  return only === undefined || other !== undefined ? undefined : episode(only);
}

/** Reads of what an Episode is an episode. */
function episode(thing: Thing): Pick<Metadata, "series" | "season_number" | "episode_number"> {
  const season = thingsOf(thing, "partofseason")[0];
  const names = [thing, season].flatMap((part) =>
    part === undefined
      ? []
      : ["partofseries", "partoftvseries"].flatMap((property) => textsWithin(part, property, "name")),
  );
  return {
    series: firstKnown(names, parseLine),
    season_number: parseCount(season && textOf(season, "seasonnumber")),
    episode_number: parseCount(textOf(thing, "episodenumber")),
  };
}

/** Reads its Clips (schema.org `hasPart`), whose offsets are seconds or ISO 8601 durations. */
function chapters(thing: Thing): Chapter[] {
  const clips = thingsOf(thing, "haspart")
    .slice(0, maxParts)
    .filter((part) => isA(part, clipTypes));
  const stated = clips.map((clip) => ({
    start: parseOffset(textsWithin(clip, "startoffset", "value")[0]),
    end: parseOffset(textsWithin(clip, "endoffset", "value")[0]),
    title: textOf(clip, "name", "headline"),
  }));
  return listChapters(stated, durationOf(thing));
}

const clipTypes: ReadonlySet<string> = new Set(["Clip"]);

function authorOf(thing: Thing): string | null {
  const names = ["author", "creator", "byartist"].flatMap((property) =>
    textsWithin(thing, property, "name", "alternatename"),
  );
  const lines = names.slice(0, maxAuthors).map(parseLine);
  return lines.find((name) => name !== null && !name.includes("://")) ?? null;
}

/** Returns the URL of the author that is called `name`. */
function profileUrl(thing: Thing, name: string | null, base: URL): string | null {
  const authors = thingsOf(thing, "author", "creator", "byartist").slice(0, maxAuthors);
  const person = authors.find((each) => parseLine(textOf(each, "name", "alternatename")) === name);
  if (person === undefined) return null;
  const [profile] = thingsOf(person, "mainentityofpage");
  const url = tryParseUrl(textOf(person, "url"), base) ?? idUrl(person, base) ?? (profile && idUrl(profile, base));
  return url?.href ?? null;
}

function firstDate(thing: Thing, ...properties: string[]): string | null {
  const stated = properties.flatMap((property) => textsOf(thing, property));
  return firstKnown(stated, parseDate);
}

/** Returns the first result of `parse` that is not null; null if there is none. */
function firstKnown<T, R>(values: readonly T[], parse: (value: T) => R | null): R | null {
  for (const value of values) {
    const result = parse(value);
    if (result !== null) return result;
  }
  return null;
}

function thumbnails(thing: Thing, base: URL): Thumbnail[] {
  const values = valuesOf(thing, "thumbnailurl", "thumbnail", "image").slice(0, maxImages);
  return values.flatMap((value) => {
    const image = typeof value === "string" ? null : value;
    const stated = image === null ? value : (textOf(image, "url", "contenturl") ?? image.id);
    const url = tryParseUrl(typeof stated === "string" ? stated : null, base);
    return thumbnailsAt(url, pixels(image, "width"), pixels(image, "height"));
  });
}

function pixels(thing: Thing | null, side: "width" | "height"): number | null {
  return parsePixels(thing && textsWithin(thing, side, "value")[0]);
}

function resources(thing: Thing, kind: "video" | "audio", base: URL): Resource[] {
  const found: Resource[] = [];
  const encodings = thingsOf(thing, "encoding", "encodings", "associatedmedia");
  for (const part of [thing, ...encodings.slice(0, maxEncodings)]) {
    const stated = {
      type: textsOf(part, "encodingformat", "fileformat").find((type) => type.includes("/")) ?? null,
      width: pixels(part, "width"),
      height: pixels(part, "height"),
    };
    const content = tryParseUrl(textOf(part, "contenturl"), base);
    if (content !== null) found.push(createResource(content, "media", stated));
    const embed = tryParseUrl(textsWithin(part, "embedurl", "url")[0], base);
    if (embed !== null) found.push(createResource(embed, "player", { ...stated, type: null }));
  }
  return found.map((each) => (each.type === null ? each : { ...each, fallback: kind }));
}

/** An `interactionCount` that does not state what it counts is of views. */
function viewCount(thing: Thing): number | null {
  return (
    interactions(thing, "UserPlays", "WatchAction", "PlayAction", "ListenAction") ??
    interactions(thing, "UserPageVisits", "ViewAction", "") ??
    firstKnown(textsOf(thing, "interactioncount"), parseCount)
  );
}

/**
 * Returns the count of the first InteractionCounter of one of these types ("": without a type), or of a
 * text in the older form `UserPlays:6241`.
 */
function interactions(thing: Thing, older: string, ...actions: string[]): number | null {
  const stated = valuesOf(thing, "interactionstatistic", "interactioncount", "userinteraction");
  for (const value of stated.slice(0, maxInteractions)) {
    if (typeof value === "string") {
      const [name = "", count] = value.slice(0, 100).split(":");
      const known = localName(name.trim()) === older ? parseCount(count) : null;
      if (known !== null) return known;
      continue;
    }
    const types = valuesOf(value, "interactiontype")
      .slice(0, maxTypes)
      .flatMap((type) => (typeof type === "string" ? [type] : [...type.types, ...(type.id === null ? [] : [type.id])]));
    if (types.length === 0) types.push("");
    if (!types.some((type) => actions.includes(localName(type)))) continue;
    const count = parseCount(textOf(value, "userinteractioncount"));
    if (count !== null) return count;
  }
  return null;
}

/** Derives the live status from the BroadcastEvent in `publication` and its start and end. */
function liveStatus(thing: Thing, now: Date): PageInfo["live_status"] {
  const event = thingsOf(thing, "publication").find((each) => textOf(each, "islivebroadcast") !== null);
  if (event === undefined || !isTrue(textOf(event, "islivebroadcast"))) return null;
  const start = Date.parse(firstDate(event, "startdate") ?? "");
  const end = Date.parse(firstDate(event, "enddate") ?? "");
  if (end <= now.getTime()) return "was_live";
  if (start > now.getTime()) return "is_upcoming";
  return Number.isNaN(start) ? null : "is_live";
}

function ageLimit(thing: Thing): number | null {
  const rated = textsWithin(thing, "contentrating", "ratingvalue", "name")[0] ?? "";
  const years = Number(/(?:^|\D)(\d{1,2})\+?$/.exec(rated.slice(0, 60).trim())?.[1] ?? 0);
  if (years >= 3 && years <= 21) return years;
  return isFalse(textOf(thing, "isfamilyfriendly")) ? 18 : null;
}

function isTrue(value: string | null): boolean {
  return /^(?:true|yes|1|https?:\/\/schema\.org\/true)$/i.test(value?.trim() ?? "");
}

function isFalse(value: string | null): boolean {
  return /^(?:false|no|0|https?:\/\/schema\.org\/false)$/i.test(value?.trim() ?? "");
}
