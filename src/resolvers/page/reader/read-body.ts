import { openMpd } from "../../../manifests/dash/dash.ts";
import { readHls } from "../../../manifests/hls/hls.ts";
import type { Manifest } from "../../../manifests/manifest.ts";
import { decodeManifest } from "../../../manifests/text.ts";
import type { StatedChapter } from "../../../model/entry.ts";
import { bestFormats } from "../../../model/format-ranking.ts";
import { readChapters } from "../../../subtitles/read.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { listChapters } from "../../chapters.ts";
import { isOfTrailer } from "../choice/similarity.ts";
import { createDraft } from "../draft.ts";
import { findPlayerFrames } from "../frames.ts";
import { readFeed } from "../lists/feed.ts";
import { decodeList, readM3u, readPls } from "../lists/playlists.ts";
import { PageText } from "../markup/charset.ts";
import type { Markup } from "../markup/markup.ts";
import { readMarkup } from "../markup/read-markup.ts";
import type { Fields, Merged } from "../merge.ts";
import { extractOembed } from "../vocabularies/oembed.ts";
import { trailerUrls } from "../vocabularies/player-elements.ts";
import type { PageDraft, ReadJob, ReadJobs, ReadKind, ReadResults } from "./reader.ts";

/**
 * Reads a body, as `Reader.read` does, without limits of time and memory.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function readBody<K extends ReadKind>(job: ReadJob<K>, body: Uint8Array): ReadResults[K] {
  return readers[job.kind](job, body);
}

const readers: { [K in ReadKind]: (job: ReadJobs[K], body: Uint8Array) => ReadResults[K] } = {
  page: readPage,
  oembed: ({ url, contentType }, body) => extractOembed(decodeManifest(body), contentType, url),
  m3u8: ({ url }, body) => withBestFormats(readHls(decodeManifest(body), url)),
  dash: ({ url }, body) => withBestFormats(openMpd(new TextDecoder().decode(body), url).listing),
  chapters: (_, body) => readListedChapters(body),
  feed: ({ url, start }, body) => readFeed(decodeManifest(body), url, start),
  m3u: ({ url, start }, body) => readM3u(decodeList(body), url, start),
  pls: ({ url, start }, body) => readPls(decodeList(body), url, start),
};

/** Leaves out the chapters that no record would have, whatever the video's duration is. */
function readListedChapters(body: Uint8Array): StatedChapter[] {
  const chapters = listChapters(readChapters(body), null);
  return chapters.map(({ start_time: start, end_time: end, title }) => ({ start, end, title }));
}

/** Leaves out the formats that no record would have: each may repeat a long URL. */
function withBestFormats(manifest: Manifest): Manifest {
  return { ...manifest, formats: bestFormats(manifest.formats) };
}

function readPage({ url, contentType, now, isPlayer }: ReadJobs["page"], body: Uint8Array): PageDraft {
  const markup = readMarkup(new PageText(body, contentType));
  const base = tryParseUrl(markup.base, url) ?? url;
  const frames = findPlayerFrames(markup.frames, base, isPlayer);
  const { metadata, merged } = createDraft(markup, url, { base, now, isPlayer, frames });
  const oembedUrl = isPlayer ? null : findOembed(markup, merged.fields, base);
  return {
    merged,
    oembed: oembedUrl === null ? null : { url: oembedUrl, metadata },
    chapters: merged.fields.chapters === undefined ? tryParseUrl(metadata.html?.chapters_url, base) : null,
    frames,
    isTrailer: !isPlayer && frames.length > 0 && playsTrailers(markup, merged, url, base),
    refresh: findRefresh(markup, base),
  };
}

/** Whether the media of a page that is not about a trailer are those of players of trailers. */
function playsTrailers(markup: Markup, { media, fields: { title } }: Merged, url: URL, base: URL): boolean {
  if (media.length === 0 || isOfTrailer({ titles: [title ?? ""], urls: [url] })) return false;
  const trailers = trailerUrls(markup, base);
  return media.every((medium) => trailers.has(medium.url.href));
}

/** Returns the URL of the page's oEmbed response; null if there is none or the page states all its fields. */
function findOembed(
  { links }: Markup,
  { title, uploader, duration, embed, thumbnails }: Fields,
  base: URL,
): URL | null {
  const isComplete = [title, uploader, duration, embed, thumbnails[0] ?? null].every((value) => value !== null);
  const link = links
    .get("alternate")
    ?.find((each) => /^(?:application\/json|text\/xml)\+oembed\b/i.test(each.get("type")?.trim() ?? ""));
  return isComplete ? null : tryParseUrl(link?.get("href"), base);
}

/** A page that is left later is one to be read, or updates itself. */
const maxDelayS = 10;

/**
 * Returns where the browser is to go from the page (`<meta http-equiv=refresh>`, HTML §4.2.5.3) within 10 seconds; `null` if
 * nowhere.
 */
function findRefresh({ metas }: Pick<Markup, "metas">, base: URL): URL | null {
  const content = metas.find(({ name }) => name === "refresh")?.content.trim() ?? "";
  const [delay = ""] = /^[\d.]{0,20}/.exec(content) ?? [];
  const rest = content.slice(delay.length);
  if (Number.parseFloat(delay) > maxDelayS || !/^[;,\s]/.test(rest)) return null;
  const stated = rest
    .replace(/^[;,\s]+/, "")
    .replace(/^url\s*=/i, "")
    .trim();
  const quote = stated.startsWith('"') || stated.startsWith("'") ? stated.slice(0, 1) : "";
  return tryParseUrl(quote === "" ? stated : stated.slice(1).split(quote, 1)[0], base);
}
