import type { Entry } from "../../../model/entry.ts";
import { parseCount } from "../../../parsers/quantities.ts";
import { parseDate } from "../../../parsers/date.ts";
import { parseLine } from "../../../parsers/text.ts";
import { isSamePage, parseUrls, tryParseUrl } from "../../../parsers/url.ts";
import type { ListedMedia } from "../metadata.ts";
import {
  durationOf,
  idUrl,
  isA,
  type Thing,
  textOf,
  textsWithin,
  thingsOf,
  type Value,
  valuesOf,
} from "../markup/thing.ts";

interface ListContext {
  base: URL;
  url: URL;
  /** Whether a thing is a video or an audio. */
  isMedium(thing: Thing): boolean;
  /** Whether a list of URLs alone, without a word of what is there, may be one of media. */
  takesUrls: boolean;
}

const listTypes: ReadonlySet<string> = new Set(["ItemList"]);
const pageTypes = /(?:^ListItem|^CreativeWork|Page)$/;
/** Fewer are a recommendation, unless the list is what the page is about. */
const minEntries = 2;
/** JSON-LD is read up to as many values of a property. */
const maxItems = 500;

/**
 * Returns what the only ItemList of a page (schema.org) lists: the main entity of one of its things, else one on the top level.
 * Each item is a medium, or a URL. Returns null if there are several lists, fewer than two items (of a main entity: no medium), or
 * items of another kind.
 */
export function readItemList(roots: readonly Thing[], context: ListContext): ListedMedia | null {
  const main = roots.flatMap((root) => thingsOf(root, "mainentity")).filter((thing) => isA(thing, listTypes));
  const lists = main.length > 0 ? main : roots.filter((root) => isA(root, listTypes));
  const [list] = new Set(lists);
  if (list === undefined || new Set(lists).size > 1) return null;
  const stated = valuesOf(list, "itemlistelement").slice(0, maxItems);
  const isMain = main.length > 0 && stated.every((value) => isOfMedium(value, context));
  const media = readItems(stated, context, isMain ? 1 : minEntries);
  const count = parseCount(textOf(list, "numberofitems"));
  return media && { entries: media, entries_count: count ?? (stated.length < maxItems ? media.length : null) };
}

/** Returns the parts of a medium that are media themselves; null if there are fewer than two. */
export function readParts(medium: Thing, context: ListContext): ListedMedia | null {
  const parts = thingsOf(medium, "haspart").filter((part) => context.isMedium(part));
  const entries = readItems(parts, context, minEntries);
  return entries && { entries, entries_count: entries.length };
}

function readItems(values: readonly Value[], context: ListContext, least: number): Entry[] | null {
  const entries = new Map<string, Entry>();
  for (const value of values) {
    const entry = readItem(value, context);
    if (entry === "other") return null;
    if (entry !== null && !entries.has(entry.url)) entries.set(entry.url, entry);
  }
  return entries.size < least ? null : [...entries.values()];
}

function isOfMedium(value: Value, context: ListContext): boolean {
  const [item = value] = typeof value === "string" ? [] : valuesOf(value, "item");
  return typeof item !== "string" && context.isMedium(item);
}

/** Returns null for what leads nowhere else, `other` for what is neither medium nor URL. */
function readItem(value: Value, context: ListContext): Entry | "other" | null {
  const listItem = typeof value === "string" ? null : value;
  const target = (listItem && valuesOf(listItem, "item")[0]) ?? value;
  const thing = typeof target === "string" ? listItem : target;
  const isMedium = thing !== null && context.isMedium(thing);
  const isPage = thing === null || thing.types.every((type) => pageTypes.test(type));
  if (!isMedium && !(isPage && context.takesUrls)) return "other";
  const { base } = context;
  const named = typeof target === "string" ? target : null;
  const stated = [named, thing && textOf(thing, "url"), listItem && textOf(listItem, "url")];
  const media = isMedium ? [textOf(thing, "contenturl"), textOf(thing, "embedurl")] : [];
  const urls = [...parseUrls(stated, base), thing && idUrl(thing, base), ...parseUrls(media, base)];
  const url = urls.find((each) => each !== null && !isSamePage(each, context.url));
  return url ? { url: url.href, ...describe(thing, listItem, base) } : null;
}

function describe(thing: Thing | null, listItem: Thing | null, base: URL): Omit<Entry, "url"> {
  const picture = thing && textsWithin(thing, "thumbnailurl", "url")[0];
  const image = thing && textsWithin(thing, "image", "url", "contenturl")[0];
  return {
    title: parseLine((thing && textOf(thing, "name", "headline")) ?? (listItem && textOf(listItem, "name"))),
    duration: thing && durationOf(thing),
    thumbnail: tryParseUrl(picture ?? image, base)?.href ?? null,
    uploaded_at: parseDate(thing && textOf(thing, "uploaddate", "datepublished", "datecreated")),
  };
}
