import { tryParseUrl } from "../../../parsers/url.ts";
import type { Metadata } from "../metadata.ts";
import { readLanguage } from "../../../parsers/language.ts";
import { authorOf, firstDate, thumbnails } from "./schema-video.ts";
import { readKeywords } from "../../../parsers/tags.ts";
import { readLine, readProse } from "../../../parsers/text.ts";
import { textOf, textsOf, textsWithin, type Thing } from "./thing.ts";

/** What schema.org's page types state about the page itself. */
export function extractPage(pages: readonly Thing[], base: URL): Metadata {
  const first = <T>(read: (page: Thing) => T | null): T | null =>
    pages.map(read).find((value) => value !== null) ?? null;
  return {
    webpage_url: first((page) => tryParseUrl(textOf(page, "url"), base)?.href ?? null),
    site_name: first((page) => readLine(textsWithin(page, "publisher", "name")[0])),
    title: first((page) => readLine(textOf(page, "headline", "name"))),
    description: first((page) => readProse(textOf(page, "description"))),
    language: first((page) => readLanguage(textOf(page, "inlanguage"))),
    uploaded_at: first((page) => firstDate(page, "datepublished", "datecreated")),
    uploader: first(authorOf),
    thumbnails: pages.flatMap((page) => thumbnails(page, base)),
    tags: readKeywords(pages.flatMap((page) => textsOf(page, "keywords"))),
  };
}
