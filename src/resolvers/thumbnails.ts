import { createHash } from "node:crypto";
import { ServiceError, shutdownError } from "../model/errors.ts";
import type { HttpClient } from "../net/client.ts";
import { fetchImage, type Image } from "../net/fetch-image.ts";
import { startDeadline } from "../async/deadline.ts";
import { createPageHeaders } from "../net/http/site-headers.ts";
import { SharedCache } from "../async/shared-cache.ts";
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

/** Size of all cached images, bytes; owners share it. */
const maxCachedBytes = 32 * 1024 * 1024;

/** How long an image is cached, here and by clients, seconds. */
export const thumbnailTtlS = 3_600;

/** Pages whose images are fetched at a time, shared by owners; further ones wait. */
const concurrency = 8;

const maxTried = 3;

/** What is wide enough for a page that lists tasks, pixels. */
const preferredWidth = 320;

/** Fetches the images of pages, and caches them. */
export class Thumbnails {
  readonly #client: HttpClient;
  readonly #timeoutMs: number;
  readonly #cache = new SharedCache<TaggedImage>({ maxSize: maxCachedBytes, ttlMs: thumbnailTtlS * 1_000 });
  readonly #inFlight = createSingleFlight<TaggedImage>();
  readonly #shares = new Shares(concurrency);
  #isStopped = false;

  constructor({ client, timeoutMs }: ThumbnailsOptions) {
    this.#client = client;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns the image of a page, from the cache if it was fetched less than an hour ago. Of `listed` are tried the smallest
   * that is at least 320 pixels wide, then the others in their order, three at most. Owners share nothing; concurrent calls of one owner
   * for one page share the requests, which are aborted with the last of them.
   *
   * @throws ServiceError `not_found` if none is listed; `upstream_timeout` after `timeoutMs`; `unavailable` once `stop`
   * was called; else as `fetchImage` for the last one tried. `signal.reason` when `signal` is aborted.
   */
  async get(illustration: Illustration, request: ThumbnailRequest): Promise<TaggedImage> {
    const { key, page } = choose(illustration, request.owner);
    return this.#cache.get(request.owner, key) ?? this.#fetchOnce(key, page.host, request, async () => illustration);
  }

  /**
   * Returns the image of a page that `read` has to read first. The page is read within a place, too: when many images of an owner fail at once,
   * their pages are not all read at once. Concurrent calls of an owner with one `key` share the reading and the requests.
   *
   * @throws as `get`, and what `read` throws
   */
  async read(
    { key, host }: { key: string; host: string },
    read: (signal: AbortSignal) => Promise<Illustration>,
    request: ThumbnailRequest,
  ): Promise<TaggedImage> {
    return this.#fetchOnce(`read ${request.owner} ${key}`, host, request, read);
  }

  /** Aborts the requests in flight and refuses new ones; safe to call twice. */
  stop(): void {
    this.#isStopped = true;
    this.#inFlight.abort(shutdownError());
  }

  /** Fetches what `find` returns, in one of the owner's places; concurrent calls with one `key` share it all. */
  #fetchOnce(
    key: string,
    host: string,
    { owner, signal }: ThumbnailRequest,
    find: (signal: AbortSignal) => Promise<Illustration>,
  ): Promise<TaggedImage> {
    return this.#inFlight.run(key, signal, async (abort) => {
      if (this.#isStopped) throw shutdownError();
      const what = `the thumbnail of ${host}`;
      using whole = startDeadline(abort.signal, this.#timeoutMs, what);
      // Who got a place in the last moment would read a page in vain.
      using wait = startDeadline(whole.signal, this.#timeoutMs / 2, `the wait for ${what}`);
      return await this.#shares.run(owner, wait.signal, async () => {
        wait.end();
        const choice = choose(await find(whole.signal), owner);
        return this.#cache.get(owner, choice.key) ?? (await this.#fetchFirst(choice, owner, whole.signal));
      });
    });
  }

  async #fetchFirst({ page, urls, key }: Choice, owner: string, signal: AbortSignal): Promise<TaggedImage> {
    let failure: unknown;
    for (const url of urls) {
      try {
        const image = await fetchImage(this.#client, url, { headers: createPageHeaders(page), owner, signal });
        const tagged = { ...image, etag: etagOf(image.bytes) };
        this.#cache.set(owner, key, tagged, image.bytes.length + key.length + 1);
        return tagged;
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    throw failure;
  }
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
