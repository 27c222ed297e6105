import type { Entry } from "../../model/entry.ts";
import type { PageInfo } from "../../model/page-info.ts";
import type { TaskOptions } from "../../model/task.ts";
import type { CollectionEntry } from "../../model/collection.ts";

/** A task that is for entries has found a playlist on its page. */
export class PlaylistFound extends Error {
  override readonly name = "PlaylistFound";
  readonly page: PageInfo;

  constructor(page: PageInfo) {
    super(`${page.url} is a playlist`);
    this.page = page;
  }
}

/** Which entries of a playlist a task is for. */
export interface EntryChoice {
  isWanted(entry: Entry, index: number): boolean;
  /** Whether no entry after this index is wanted. */
  isComplete(index: number): boolean;
  /** Returns what was asked for and is not there, if the playlist ends with this index; undefined: nothing. */
  missingAfter(index: number): string | undefined;
  /** Returns which URLs were not wanted of an entry yet, by their indexes; undefined: it is not by URL. */
  left(): number[] | undefined;
}

/**
 * @param entries As `options.entries` of a task has them; see its schema.
 * @param left What `left` returned before, if the entries until then are not looked at again.
 */
export function chooseEntries(entries: TaskOptions["entries"] = "all", left?: readonly number[]): EntryChoice {
  return typeof entries === "string" ? chooseByIndex(parseIndexRanges(entries)) : chooseByUrl(entries, left);
}

interface IndexRange {
  first: number;
  last: number;
}

/** Returns ranges of indexes: of `"1-20,25,40-"` or `"all"`, which may overlap; the end of `"40-"` is Infinity. */
function parseIndexRanges(text: string): IndexRange[] {
  if (text === "all") return [{ first: 1, last: Infinity }];
  return text.split(",").map((part) => {
    const [first = "", last] = part.split("-");
    return { first: Number(first), last: last === undefined ? Number(first) : Number(last || Infinity) };
  });
}

function chooseByIndex(ranges: readonly IndexRange[]): EntryChoice {
  const highest = Math.max(...ranges.map(({ last }) => last));
  return {
    isWanted: (_, index) => ranges.some(({ first, last }) => first <= index && index <= last),
    isComplete: (index) => index >= highest,
    missingAfter(index) {
      const missing = ranges.filter(({ first }) => first > index);
      if (missing.length === 0) return undefined;
      const names = missing.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`));
      return `the playlist has ${index} entries, and none at ${names.join(",").replaceAll("Infinity", "").slice(0, 100)}`;
    },
    left: () => undefined,
  };
}

/** An entry that comes again is wanted once. */
function chooseByUrl(urls: readonly string[], indexes: readonly number[] = urls.map((_, n) => n)): EntryChoice {
  const { size } = new Set(urls.map(normalized));
  const left = new Map(indexes.map((n) => [normalized(urls[n] ?? ""), n]));
  return {
    isWanted: ({ url }) => left.delete(normalized(url)),
    isComplete: () => left.size === 0,
    missingAfter: () => (left.size === 0 ? undefined : `${left.size} of ${size} URLs are not in the playlist`),
    left: () => [...left.values()],
  };
}

function normalized(url: string): string {
  return URL.parse(url)?.href ?? url;
}

type EntryMetadata = NonNullable<CollectionEntry["entry"]>;

/** Longest text of an entry that its task keeps; longer ones are cut, longer URLs left out. */
const maxTextLength = 1_000;
const maxUrlLength = 8_192;

/** Returns what a playlist says of an entry that the page of the entry may not say; undefined: nothing. */
export function metadataOf({
  title,
  uploaded_at,
  uploader,
  thumbnail,
  chapters,
  chapters_url,
  subtitles,
}: Entry): EntryMetadata | undefined {
  const metadata: EntryMetadata = {
    ...(title != null && { title: title.slice(0, maxTextLength).toWellFormed() }),
    ...(uploaded_at != null && { uploaded_at: uploaded_at.slice(0, maxTextLength) }),
    ...(uploader != null && { uploader: uploader.slice(0, maxTextLength).toWellFormed() }),
    ...(thumbnail != null && thumbnail.length <= maxUrlLength && { thumbnail }),
    ...(chapters !== undefined && { chapters }),
    ...(chapters_url !== undefined && chapters_url.length <= maxUrlLength && { chapters_url }),
    ...(subtitles !== undefined && { subtitles }),
  };
  return Object.keys(metadata).length === 0 ? undefined : metadata;
}

/** Adds what the playlist says of an entry to its page, where that does not say it: a file is only called as its URL is. */
export function withEntryMetadata<P extends PageInfo>(
  page: P,
  { title, uploaded_at, uploader, thumbnail, chapters, subtitles }: EntryMetadata = {},
): P {
  const added: Partial<PageInfo> = {
    ...(title !== undefined && (page.title === null || page.sources["title"] === "media") && { title }),
    ...(uploaded_at !== undefined && page.uploaded_at === null && { uploaded_at }),
    ...(uploader !== undefined && page.uploader === null && { uploader }),
    ...(thumbnail !== undefined &&
      page.thumbnails.length === 0 && { thumbnails: [{ url: thumbnail, width: null, height: null }] }),
    ...(chapters !== undefined && page.chapters === undefined && { chapters }),
    ...(subtitles !== undefined && Object.keys(page.subtitles).length === 0 && { subtitles }),
  };
  const sources = Object.fromEntries(Object.keys(added).map((field) => [field, "playlist" as const]));
  return { ...page, ...added, sources: { ...page.sources, ...sources } };
}
