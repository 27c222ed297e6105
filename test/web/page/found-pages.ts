import { maxEntries } from "../../../src/model/entry.ts";
import type { Format, PageInfo } from "../../../src/model/page-info.ts";
import { pageInfo } from "../../page-info.ts";

export function format(id: string, fields: Partial<Format> = {}): Format {
  return {
    format_id: id,
    url: `https://media.example.com/${id}.mp4`,
    manifest_url: null,
    protocol: "https",
    ext: "mp4",
    mime_type: "video/mp4",
    width: null,
    height: null,
    fps: 25,
    vcodec: "avc1.64001f",
    acodec: "mp4a.40.2",
    tbr: null,
    filesize: null,
    language: null,
    has_drm: false,
    ...fields,
  };
}

/** Heights and sizes that sites offer, best first. */
const ladder = [2160, 1440, 1080, 720, 540, 480, 360, 240, 144];

/** A page with much of everything: qualities, languages, subtitles, sources, a format under DRM. */
export function richPage(url: string, thumbnail: string): PageInfo {
  const videos = ladder.map((height) =>
    format(`hls-${height}`, {
      protocol: "m3u8",
      manifest_url: "https://media.example.com/main.m3u8",
      width: Math.round((height * 16) / 9),
      height,
      fps: height > 720 ? 50 : 25,
      vcodec: height > 1080 ? "hvc1.2.4.L153" : "avc1.64001f",
      tbr: height * 4,
    }),
  );
  const audios = ["de", "en", "fr", "zh-Hant", "qaa-x-original"].map((language) =>
    format(`audio-${language}`, { vcodec: "none", fps: null, tbr: 128, language }),
  );
  return pageInfo({
    url,
    webpage_url: url,
    title: "How the old bridge by the sea was built, and why it still stands",
    site_name: "Example Video",
    uploader: "Film club of the harbour",
    duration: 3723,
    thumbnails: [{ url: thumbnail, width: 320, height: 180 }],
    formats: [
      ...videos,
      ...audios,
      format("locked", { height: 1080, width: 1920, has_drm: true }),
      format("file", { height: 720, width: 1280, filesize: 123_456_789 }),
    ],
    subtitles: {
      de: [{ url: "https://media.example.com/de.vtt", ext: "vtt", name: "Deutsch" }],
      en: [{ url: "https://media.example.com/en.vtt", ext: "vtt", name: null }],
    },
    sources: { title: "json-ld", uploader: "og", duration: "manifest", formats: "manifest" },
  });
}

/** A page with one film, in two qualities whose sizes are known. */
export function filmPage(url: string, fields: Partial<PageInfo> = {}): PageInfo {
  return pageInfo({
    url,
    webpage_url: url,
    title: "An evening walk by the sea",
    uploader: "Film club",
    duration: 61.5,
    formats: [
      format("720", { width: 1280, height: 720, filesize: 15_300_000 }),
      format("360", { width: 640, height: 360, filesize: 5_100_000 }),
    ],
    ...fields,
  });
}

/** A page that lists others, 200 at a time after `entriesCursor`; the odd ones with a picture, if it is given. */
export function playlistPage(
  url: string,
  count: number,
  { thumbnail, entriesCursor = "0" }: { thumbnail?: string; entriesCursor?: string | undefined } = {},
): PageInfo {
  const all = Array.from({ length: count }, (_, i) => ({
    url: `https://video.example.com/watch/part-${i + 1}`,
    title: `The last train, part ${i + 1}`,
    duration: 600 + i,
    ...(thumbnail !== undefined && i % 2 === 0 && { thumbnail }),
  }));
  const start = Number(entriesCursor);
  const end = start + maxEntries;
  return pageInfo({
    url,
    webpage_url: url,
    title: "The last train",
    entries: all.slice(start, end),
    entries_count: count,
    ...(end < count && { entries_next: `${end}` }),
  });
}
