import type { CollectionEntry } from "../../model/collection.ts";
import type { Entry } from "../../model/entry.ts";
import type { PageInfo } from "../../model/page-info.ts";

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
