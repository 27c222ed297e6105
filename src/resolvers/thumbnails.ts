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

/** A page, and its thumbnails, best first. */
export interface Illustration {
  page: URL;
  listed: readonly Thumbnail[];
}

interface ThumbnailRequest {
  /** Who asks; the pages whose images are fetched at a time are shared by owners. */
  owner: string;
  signal: AbortSignal;
}

interface ThumbnailsOptions {
  client: HttpClient;
  /** Longest time for one image: the wait for a place, half of it at most; the page if it is to be read; all images that are tried. */
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

  async function fetchFirst({ page, urls, key }: Choice, owner: string, signal: AbortSignal): Promise<TaggedImage> {
    let failure: unknown;
    for (const url of urls) {
      try {
        const image = await fetchImage(client, url, { headers: createPageHeaders(page), owner, signal });
        const tagged = { ...image, etag: etagOf(image.bytes) };
        cache.set(key, tagged);
        return tagged;
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    throw failure;
  }

  /** Has one of the owner's places until `job` has ended, which finds what is to be fetched. */
  async function fetchInPlace(
    host: string,
    owner: string,
    abort: AbortSignal,
    job: (signal: AbortSignal) => Promise<Illustration>,
  ): Promise<TaggedImage> {
    const what = `the thumbnail of ${host}`;
    const { signal, end } = startDeadline(abort, timeoutMs, what);
    // Who got a place in the last moment would read a page in vain.
    const wait = startDeadline(signal, timeoutMs / 2, `the wait for ${what}`);
    try {
      return await shares.run(owner, wait.signal, async () => {
        wait.end();
        const choice = choose(await job(signal), owner);
        return cache.get(choice.key) ?? (await fetchFirst(choice, owner, signal));
      });
    } finally {
      wait.end();
      end();
    }
  }

  return {
    /**
     * Returns the image of a page, from the cache if it was fetched less than an hour ago. Of `listed` are tried the smallest
     * that is at least 320 pixels wide, then the others in their order, three at most. Owners share nothing; concurrent calls of one owner
     * for one page share the requests, which are aborted with the last of them.
     *
     * @throws ServiceError `not_found` if none is listed; `upstream_timeout` after `timeoutMs`; `unavailable` once `stop`
     * was called; else as `fetchImage` for the last one tried. `signal.reason` when `signal` is aborted.
     */
    async get(illustration: Illustration, { owner, signal }: ThumbnailRequest): Promise<TaggedImage> {
      const { key, page } = choose(illustration, owner);
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      return inFlight.run(key, signal, async ({ signal: abort }) => {
        if (isStopped) throw shutdownError();
        return fetchInPlace(page.host, owner, abort, async () => illustration);
      });
    },
    /**
     * Does the same for a page that `read` has to read first. The page is read within a place, too: when many images of an owner fail at once,
     * their pages are not all read at once. Concurrent calls of an owner with one `key` share the reading and the requests.
     *
     * @throws as `get`, and what `read` throws
     */
    async read(
      { key, host }: { key: string; host: string },
      read: (signal: AbortSignal) => Promise<Illustration>,
      { owner, signal }: ThumbnailRequest,
    ): Promise<TaggedImage> {
      return inFlight.run(`read ${owner} ${key}`, signal, async ({ signal: abort }) => {
        if (isStopped) throw shutdownError();
        return fetchInPlace(host, owner, abort, read);
      });
    },
    /** Aborts the requests in flight and refuses new ones; safe to call twice. */
    stop(): void {
      isStopped = true;
      inFlight.abort(shutdownError());
    },
  };
}

interface Choice {
  page: URL;
  /** To try, the first one first. */
  urls: URL[];
  /** With the page: what a site sends may depend on the `Referer`. With the owner: a cached image would show what others have read. */
  key: string;
}

/** @throws ServiceError `not_found` */
function choose({ page, listed }: Illustration, owner: string): Choice {
  const wide = listed.filter(({ width }) => (width ?? 0) >= preferredWidth);
  const smallest = wide.toSorted((a, b) => (a.width ?? 0) - (b.width ?? 0))[0];
  const hrefs = [...(smallest ? [smallest] : []), ...listed].map(({ url }) => url);
  const parsed = [...new Set(hrefs)].map((href) => URL.parse(href));
  const urls = parsed.filter((url) => url !== null).slice(0, maxTried);
  if (urls.length === 0) throw new ServiceError("not_found", `the page at ${page.host} has no thumbnail`);
  return { page, urls, key: [owner, page.href, ...urls.map(({ href }) => href)].join(" ") };
}

/** With a strong entity tag of the bytes. */
export type TaggedImage = Image & { etag: string };

function etagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url")}"`;
}
