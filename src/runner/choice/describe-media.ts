import type { MediaDescription } from "../../engines/engine.ts";
import { type PageInfo, pageUrlOf } from "../../model/page-info.ts";
import { noAdditions } from "../../remux/additions.ts";
import type { SkipSegment } from "../../resolvers/sponsor-block.ts";
import { withSegments } from "./skips.ts";

/**
 * Returns what is written of a page into the files that are made of its media.
 *
 * @param marked The segments that the file keeps and that become chapters of it.
 */
export function describeMedia(page: PageInfo, marked: readonly SkipSegment[]): MediaDescription {
  const { title, uploader, uploaded_at, description, thumbnails, chapters = [] } = page;
  // The name of a file is worth less than what the file says itself.
  const isName = page.sources["title"] === "media";
  const named = chapters.map(({ start_time, end_time, title: name }, index) => ({
    startS: start_time,
    endS: end_time ?? Infinity,
    // Of everything on the page, even if only a part of it is in the file.
    title: name || `Chapter ${index + 1}`,
  }));
  return {
    tags: {
      ...noAdditions.tags,
      title: isName ? null : title,
      artist: uploader,
      date: uploaded_at,
      description,
      url: pageUrlOf(page),
    },
    name: title,
    chapters: marked.length > 0 ? withSegments(named, marked, title ?? "Video") : named,
    covers: thumbnails.map(({ url }) => url).filter((url) => URL.canParse(url)),
  };
}
