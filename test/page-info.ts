import type { PageInfo } from "../src/model/page-info.ts";

/** What is known of a page of which nothing is known, but for `fields`. */
export function pageInfo(fields: Partial<PageInfo> = {}): PageInfo {
  const url = "https://example.com/watch/42";
  return {
    url,
    webpage_url: url,
    site_name: null,
    media_type: "video",
    title: null,
    description: null,
    language: null,
    duration: null,
    uploaded_at: null,
    uploader: null,
    uploader_url: null,
    thumbnails: [],
    embed: null,
    view_count: null,
    like_count: null,
    live_status: null,
    age_limit: null,
    tags: [],
    formats: [],
    subtitles: {},
    sources: {},
    resolver: "page",
    fetched_at: "2026-01-01T00:00:00.000Z",
    ...fields,
  };
}
