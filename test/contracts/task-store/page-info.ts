import type { PageInfo } from "../../../src/model/page-info.ts";

/** Returns page information with a value in every kind of field. */
export function samplePageInfo(): PageInfo {
  return {
    url: "https://video.example.com/watch",
    webpage_url: "https://video.example.com/watch",
    site_name: "Example Video",
    media_type: "video",
    title: "Ein Titel mit \u{1F3AC}, \u0000 und \ud800",
    description: null,
    language: "de",
    duration: 12.5,
    uploaded_at: "2029-12-31",
    uploader: null,
    uploader_url: null,
    thumbnails: [{ url: "https://video.example.com/a.jpg", width: 640, height: 360 }],
    embed: null,
    view_count: 7,
    like_count: null,
    live_status: "not_live",
    age_limit: null,
    tags: ["one", "two"],
    formats: [],
    subtitles: { de: [{ url: "https://video.example.com/de.vtt", ext: "vtt", name: null }] },
    sources: { title: "og" },
    resolver: "sample",
    fetched_at: "2030-01-01T00:00:00.000Z",
  };
}
