import { ServiceError } from "../../model/errors.ts";
import { readMpd } from "../../manifests/dash/dash.ts";
import { maxLinkedBytes } from "../../manifests/dash/links.ts";
import { createFormatIds } from "../../manifests/format-ids.ts";
import { readHlsInSteps } from "../../manifests/hls/hls.ts";
import type { Manifest } from "../../manifests/manifest.ts";
import { readManifestText } from "../../manifests/text.ts";
import type { GetOptions, HttpClient } from "../../net/client.ts";
import type { CookieJar } from "../../net/cookies.ts";
import { createPageHeaders } from "../../net/http/site-headers.ts";
import type { Format } from "../../model/page-info.ts";
import type { Steps, TimeSlices } from "../../parsers/steps.ts";
import { pageKey } from "../../parsers/url.ts";
import { type Content, type FileInfo, firstBytes, readContent, readFileInfo } from "./content.ts";
import { bestFormats } from "../../model/format-ranking.ts";
import { createFormat, type Medium } from "./formats.ts";
import type { Metadata } from "./metadata.ts";
import { extractOembed } from "./vocabularies/oembed.ts";

/** `hasManifest`: at least one manifest was read. */
export interface FormatListing extends Manifest {
  hasManifest: boolean;
}

/** A manifest, its URL after redirects. */
export interface FetchedManifest {
  protocol: Medium["protocol"];
  text: string;
  url: URL;
}

/** Value of the `Accept` field for a page. */
export const acceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

const maxManifests = 3;
const maxManifestBytes = 4 * 1024 * 1024;
const maxOembedBytes = 512 * 1024;

export interface LinkFetcherOptions {
  client: HttpClient;
  slices: TimeSlices;
  signal: AbortSignal;
  owner: string | undefined;
  cookies: CookieJar;
  /** URL of the page. */
  pageUrl: URL;
  /** Of all requests together, from the first one on. */
  timeoutMs: number;
  /** Limit of a player's page, decoded bytes. */
  pageMaxBytes: number;
}

/**
 * Sends the requests that a page leads to, as a browser does: with the `Referer` of the page `from`, and the cookies
 * of the jar, which keeps those that responses set. Its methods reject only when the signal is aborted, except
 * `readManifest`.
 */
export class LinkFetcher {
  readonly #options: LinkFetcherOptions;
  readonly #readPages: Set<string>;
  #signal: AbortSignal | undefined;

  constructor(options: LinkFetcherOptions) {
    this.#options = options;
    this.#readPages = new Set([pageKey(options.pageUrl)]);
  }

  /** Returns what the oEmbed response at `url` states; {} if it cannot be fetched or parsed. */
  async fetchOembed(url: URL, from: URL): Promise<Metadata> {
    const metadata = await this.#try(async (signal) => {
      const fetched = await this.#fetchText(url, from, { signal, maxBytes: maxOembedBytes });
      return extractOembed(fetched.text, fetched.type, fetched.url);
    });
    return metadata instanceof ServiceError ? {} : metadata;
  }

  /**
   * Returns the formats of `media`, best first, each with a unique `format_id`. Fetches the first
   * `maxManifests` manifests concurrently; one that cannot be fetched is listed as a format itself, one
   * that cannot be parsed is left out.
   */
  async listFormats(media: readonly Medium[], from: URL): Promise<FormatListing> {
    const manifests = media.filter(({ protocol }) => protocol !== "https").slice(0, maxManifests);
    const results = manifests.map(async (medium) => {
      const read = (signal: AbortSignal) => this.#readManifest(medium, from, signal);
      return [medium, await this.#try(read)] as const;
    });
    const byMedium = new Map(await Promise.all(results));
    return this.#options.slices.run(createListing(media, byMedium), this.#options.signal);
  }

  /**
   * Returns what a player's page at `url` is; null if it cannot be fetched, is of another kind, or is the page itself
   * or a player's page that was fetched before.
   */
  async fetchPlayer(url: URL, from: URL): Promise<{ content: Content; url: URL } | null> {
    const { slices, pageMaxBytes } = this.#options;
    const key = pageKey(url);
    if (this.#readPages.has(key)) return null;
    this.#readPages.add(key);
    return this.#tryOrNull(async (signal) => {
      const limits = { signal, maxBytes: pageMaxBytes };
      const response = await this.#get(url, from, { ...limits, accept: acceptPage });
      return { content: await readContent(response, slices, signal), url: response.url };
    });
  }

  /**
   * Returns what a manifest lists, with the remote elements of an MPD.
   *
   * Rejects with the errors of the parsers and the requests.
   */
  async readManifest(manifest: FetchedManifest, from: URL): Promise<Manifest> {
    const result = await this.#try((signal) => this.#parseManifest(manifest, from, signal));
    if (result instanceof ServiceError) throw result;
    return result;
  }

  /** Returns what the HLS playlist at `url` lists; null if it cannot be fetched or parsed. */
  async fetchPlaylist(url: URL, from: URL): Promise<Manifest | null> {
    return this.#tryOrNull((signal) => this.#readManifest({ url, protocol: "m3u8" }, from, signal));
  }

  /**
   * Returns what the server and the first 64 KiB tell of the file at `url`; null if it cannot be fetched or is no media
   * file.
   */
  async fetchFileInfo(url: URL, from: URL): Promise<FileInfo | null> {
    return this.#tryOrNull(async (signal) => {
      // The body is left before any limit: it may be endless.
      const limits = { signal, maxBytes: Number.MAX_SAFE_INTEGER };
      return readFileInfo(await this.#get(url, from, { ...limits, identity: true, range: firstBytes }));
    });
  }

  async #readManifest(
    { url, protocol }: Pick<Medium, "url" | "protocol">,
    from: URL,
    signal: AbortSignal,
  ): Promise<Manifest> {
    const fetched = await this.#fetchText(url, from, { signal, maxBytes: maxManifestBytes });
    return this.#parseManifest({ ...fetched, protocol }, from, signal);
  }

  #parseManifest({ protocol, text, url }: FetchedManifest, from: URL, signal: AbortSignal): Promise<Manifest> {
    const run = <T>(steps: Steps<T>) => this.#options.slices.run(steps, this.#options.signal);
    if (protocol === "m3u8") return run(readHlsInSteps(text, url));
    const fetchText = (link: URL) => this.#fetchText(link, from, { signal, maxBytes: maxLinkedBytes });
    return readMpd({ text, url }, { run, fetchText });
  }

  async #fetchText(url: URL, from: URL, request: GetOptions) {
    const response = await this.#get(url, from, request);
    return {
      text: await readManifestText(response.body),
      type: response.headers.get("content-type") ?? null,
      url: response.url,
    };
  }

  #get(url: URL, from: URL, request: GetOptions) {
    const { client, owner, cookies } = this.#options;
    return client.get(url, { ...request, owner, headers: createPageHeaders(from), cookies });
  }

  async #tryOrNull<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
    const result = await this.#try(request);
    return result instanceof ServiceError ? null : result;
  }

  /** Returns the request's result or its error; rejects only when the signal is aborted. */
  async #try<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T | ServiceError> {
    const { signal, timeoutMs } = this.#options;
    this.#signal ??= AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return await request(this.#signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ServiceError) return error;
      if (!this.#signal.aborted) throw error;
      return new ServiceError("upstream_timeout", `no response within ${timeoutMs} ms`, {
        cause: error,
      });
    }
  }
}

function* createListing(
  media: readonly Medium[],
  results: ReadonlyMap<Medium, Manifest | ServiceError>,
): Steps<FormatListing> {
  const manifests = [...results.values()].filter((result): result is Manifest => !(result instanceof ServiceError));
  const formats = media.flatMap((medium): Format[] => {
    const result = results.get(medium);
    if (result === undefined) return [createFormat(medium)];
    if (!(result instanceof ServiceError)) return result.formats;
    return result.code === "upstream_invalid" ? [] : [createFormat(medium)];
  });
  yield;
  const uniqueId = createFormatIds();
  return {
    formats: bestFormats(formats).map((format) => ({
      ...format,
      format_id: uniqueId(format.format_id),
    })),
    subtitles: Object.assign({}, ...manifests.map(({ subtitles }) => subtitles).toReversed()),
    duration: manifests.find(({ duration }) => duration !== null)?.duration ?? null,
    live_status: manifests.find((each) => each.live_status !== null)?.live_status ?? null,
    hasManifest: manifests.length > 0,
  };
}
