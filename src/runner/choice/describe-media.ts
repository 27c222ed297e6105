import type { MediaDescription } from "../../engines/engine.ts";
import { pageUrlOf, type PageInfo } from "../../model/page-info.ts";

/** Returns what is written of a page into the files that are made of its media. */
export function describeMedia(page: PageInfo): MediaDescription {
  const { title, uploader, uploaded_at, description, thumbnails } = page;
  return {
    tags: { title, artist: uploader, date: uploaded_at, description, url: pageUrlOf(page) },
    chapters: [],
    covers: thumbnails.map(({ url }) => url).filter((url) => URL.canParse(url)),
  };
}
