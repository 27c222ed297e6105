import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { ServiceError, shutdownError } from "../model/errors.ts";
import type { HttpClient } from "../net/client.ts";
import { fetchImage, type Image } from "../net/fetch-image.ts";
import { startDeadline } from "../async/deadline.ts";
import { createPageHeaders } from "../net/http/site-headers.ts";
import { Shares } from "../async/shares.ts";
import type { Thumbnail } from "../model/page-info.ts";
import { createSingleFlight } from "../async/single-flight.ts";

interface ThumbnailRequest {
  /** Who asks; the pages whose images are fetched at a time are shared by owners. */
  owner: string;
  signal: AbortSignal;
}

interface ThumbnailsOptions {
  client: HttpClient;
  /** Longest time for one page, with all that are tried and the wait for a slot. */
  timeoutMs: number;
}

/** Size of all cached images, bytes. */
const maxCachedBytes = 32 * 1024 * 1024;

/** How long an image is cached, here and by clients, seconds. */
export const thumbnailTtlS = 3_600;

/** Pages whose images are fetched at a time, shared by owners; further ones wait. */
const concurrency = 8;

const maxTried = 3;

/** What is wide enough for a page that lists tasks, pixels. */
const preferredWidth = 320;

export type Thumbnails = ReturnType<typeof createThumbnails>;

/** Creates the cache of the images of pages, which it fetches. */
export function createThumbnails({ client, timeoutMs }: ThumbnailsOptions) {
  const cache = new LRUCache<string, TaggedImage>({
    maxSize: maxCachedBytes,
    sizeCalculation: ({ bytes }, key) => bytes.length + key.length + 1,
    ttl: thumbnailTtlS * 1_000,
  });
  const inFlight = createSingleFlight<TaggedImage>();
  const shares = new Shares(concurrency);
  let isStopped = false;

  async function fetchFirst(page: URL, urls: readonly URL[], owner: string, abort: AbortSignal): Promise<Image> {
    const { signal, end } = startDeadline(abort, timeoutMs, `the thumbnail of ${page.host}`);
    let release = () => {};
    try {
      release = await shares.wait(owner, signal);
      let failure: unknown;
      for (const url of urls) {
        try {
          return await fetchImage(client, url, { headers: createPageHeaders(page), owner, signal });
        } catch (error) {
          signal.throwIfAborted();
          failure = error;
        }
      }
      throw failure;
    } finally {
      release();
      end();
    }
  }

  return {
    /**
     * Returns the image of a page, from the cache if it was fetched less than an hour ago. `listed` are its thumbnails, best
     * first: tried are the smallest that is at least 320 pixels wide, then the others in their order, three at most.
     * Concurrent calls of one owner for one page share the requests, which are aborted with the last of them.
     *
     * @throws ServiceError `not_found` if none is listed; `upstream_timeout` after `timeoutMs`; `unavailable` once `stop`
     * was called; else as `fetchImage` for the last one tried. `signal.reason` when `signal` is aborted.
     */
    async get(page: URL, listed: readonly Thumbnail[], { owner, signal }: ThumbnailRequest): Promise<TaggedImage> {
      const urls = choose(listed);
      if (urls.length === 0) throw new ServiceError("not_found", `the page at ${page.host} has no thumbnail`);
      // With the page: what a site sends may depend on the `Referer`.
      const key = [page, ...urls].map(({ href }) => href).join(" ");
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      return inFlight.run(`${owner} ${key}`, signal, async ({ signal: abort }) => {
        if (isStopped) throw shutdownError();
        const image = await fetchFirst(page, urls, owner, abort);
        const tagged = { ...image, etag: etagOf(image.bytes) };
        cache.set(key, tagged);
        return tagged;
      });
    },
    /** Aborts the requests in flight and refuses new ones; safe to call twice. */
    stop(): void {
      isStopped = true;
      inFlight.abort(shutdownError());
    },
  };
}

/** Returns the URLs to try, the first one first. */
function choose(listed: readonly Thumbnail[]): URL[] {
  const wide = listed.filter(({ width }) => (width ?? 0) >= preferredWidth);
  const smallest = wide.toSorted((a, b) => (a.width ?? 0) - (b.width ?? 0))[0];
  const hrefs = [...(smallest ? [smallest] : []), ...listed].map(({ url }) => url);
  const urls = [...new Set(hrefs)].map((href) => URL.parse(href));
  return urls.filter((url) => url !== null).slice(0, maxTried);
}

/** With a strong entity tag of the bytes. */
type TaggedImage = Image & { etag: string };

function etagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url")}"`;
}
