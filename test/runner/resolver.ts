import { formatOf } from "../formats.ts";
import { pageInfo } from "../page-info.ts";
import { PageInfo } from "../../src/model/page-info.ts";
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

/** What is known of a page that has one format. */
export function pageOf(url: URL, fields: Partial<PageInfo> = {}): PageInfo {
  const { href } = url;
  const formats = [formatOf("only", { url: href })];
  return pageInfo({ url: href, webpage_url: href, title: "A film", formats, ...fields });
}
