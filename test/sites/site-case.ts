import type { MediaFixture } from "../media/media-fixtures.ts";
import { resource } from "../media/resources.ts";
import type { Site } from "../media/site.ts";

/** A site whose page, at `watch`, leads to a medium in one of the ways that sites use. */
export interface SiteCase {
  /** As a test's title says it. */
  name: string;
  /** Name of the fixture that the site has. */
  media: string;
  /** Adds the page, and what the site demands, to a site that has the medium's resources already. */
  prepare(site: Site, media: MediaFixture): void;
}

/** The fixtures that the cases use. */
export const media = {
  mp4: "an MP4 with its index in front",
  webm: "a WebM of VP9 and Opus",
  hls: "HLS in MPEG-TS with B-frames",
  hlsQualities: "HLS in MPEG-TS of two qualities",
  hlsLanguages: "HLS in fMP4 with sound of two languages apart",
  hlsEncrypted: "HLS under AES-128 with a stated IV",
  dash: "DASH with a SegmentTimeline",
  dashFiles: "DASH of single files",
} as const;

export interface PageParts {
  head?: string;
  body?: string;
}

/** Returns a page with what most pages of videos have besides: a title, a picture, links to others. */
export function pageOf({ head = "", body = "" }: PageParts): string {
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The film</title>' +
    '<meta property="og:title" content="The film"><meta property="og:image" content="poster.jpg">' +
    `${head}</head><body><h1>The film</h1>${body}<a href="watch/2">Another film</a></body></html>`
  );
}

export function servePage(site: Site, path: string, parts: PageParts): void {
  site.resources.set(path, resource("text/html; charset=utf-8", pageOf(parts)));
}

/** Returns a value as JSON for a script element. */
export const inScript = (value: unknown): string => JSON.stringify(value).replaceAll("<", String.raw`\u003c`);

/** Returns a text for an attribute in double quotes. */
export const inAttribute = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** Returns a case whose page is made from the URL of the medium. */
export function casePage(name: string, fixture: string, parts: (url: string, site: Site) => PageParts): SiteCase {
  return {
    name,
    media: fixture,
    prepare: (site, { entry }) => servePage(site, "watch", parts(site.url(entry), site)),
  };
}
