import { formatOf } from "../formats.ts";
import { PageInfo } from "../../src/page-info.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";

/** Creates a resolver whose pages have one format, or are what `page` returns. */
export function createTestResolver(
  page: (url: URL, signal: AbortSignal) => Promise<PageInfo> = async (url) => pageOf(url),
): Resolver {
  return {
    name: "test",
    output: PageInfo,
    async resolve(url, { signal }) {
      signal.throwIfAborted();
      return page(url, signal);
    },
    close: async () => {},
  };
}

export function pageOf(url: URL, changes: Partial<PageInfo> = {}): PageInfo {
  return {
    url: url.href,
    webpage_url: url.href,
    site_name: null,
    media_type: "video",
    title: "A film",
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
    formats: [formatOf("only", { url: url.href })],
    subtitles: {},
    sources: {},
    resolver: "test",
    fetched_at: "2030-01-01T00:00:00.000Z",
    ...changes,
  };
}
