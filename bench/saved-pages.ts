import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../src/model/errors.ts";
import type { HttpResponse, HttpClient } from "../src/net/client.ts";
import type { PageInfo } from "../src/model/page-info.ts";
import { createLocalReader } from "../test/resolvers/page/local-reader.ts";
import { createPageResolver } from "../src/resolvers/page/page-resolver.ts";

interface Listed {
  file: string;
  url: string;
  /** "video", "no-video", … */
  kind: string;
  /** Of the saved bytes, whatever their own `<meta>` says. */
  encoding: string;
}

export interface SavedPage extends Listed {
  bytes: Uint8Array;
}

/** Reads the pages that `pages.json` in `directory` lists. */
export async function readSavedPages(directory: string): Promise<SavedPage[]> {
  const list: Listed[] = JSON.parse(await readFile(join(directory, "pages.json"), "utf8"));
  return Promise.all(list.map(async (page) => ({ ...page, bytes: await readFile(join(directory, page.file)) })));
}

/** Returns what the page resolver reads from the saved bytes, without a network; null if it fails; in this process, unless `reader` is given. */
export async function resolveSavedPage(page: SavedPage, reader = createLocalReader()): Promise<PageInfo | null> {
  const client = createSavedClient(page);
  const resolver = createPageResolver({ client, reader, pageMaxBytes: page.bytes.length });
  try {
    return await resolver.resolve(new URL(page.url), { signal: new AbortController().signal });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return null;
  }
}

/** Responds to the page's URL with the saved bytes, in chunks as a socket delivers them, and to no other. */
function createSavedClient({ url: pageUrl, encoding, bytes }: SavedPage): HttpClient {
  const page = new URL(pageUrl);
  const charset = encoding.replace(/-bom$/, "").replace(/^cp/, "windows-");
  const headers = new Map([["content-type", `text/html; charset=${charset}`]]);
  return {
    async get(url): Promise<HttpResponse> {
      if (url.href !== page.href) {
        throw new ServiceError("upstream_unreachable", `${url.href} is not among the saved pages`);
      }
      return { url: page, status: 200, headers, body: inChunks(bytes), release() {} };
    },
    close: async () => {},
  };
}

async function* inChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 65_536) yield bytes.subarray(start, start + 65_536);
}
