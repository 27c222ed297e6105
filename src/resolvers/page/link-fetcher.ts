import { text as readText } from "node:stream/consumers";
import { ServiceError } from "../../model/errors.ts";
import { readMpd } from "../../manifests/dash/dash.ts";
import { createFormatIds } from "../../manifests/format-ids.ts";
import { readHlsInSteps } from "../../manifests/hls/hls.ts";
import type { Manifest } from "../../manifests/manifest.ts";
import type { GetOptions, HttpClient } from "../../net/client.ts";
import type { CookieJar } from "../../net/cookies.ts";
import { createPageHeaders } from "../../net/http/site-headers.ts";
import type { Format } from "../../model/page-info.ts";
import type { Steps, TimeSlices } from "../../parsers/steps.ts";
import { pageKey } from "../../parsers/url.ts";
import { type Content, readContent } from "./content.ts";
import { type FileFacts, firstBytes, readFileFacts } from "./file-facts.ts";
import { bestFormats } from "../../model/format-ranking.ts";
import { createFormat } from "./formats.ts";
import type { Metadata } from "./metadata.ts";
import type { Medium } from "./resources.ts";
import { extractOembed } from "./vocabularies/oembed.ts";

/**
 * Sends the requests that a page leads to, as a browser does: with the `Referer` of the page `from`, and the cookies
 * of the jar, which keeps those that responses set.
 */
export interface LinkFetcher {
  /** Returns what the oEmbed response at `url` states; {} if it cannot be fetched or parsed. */
  fetchOembed(url: URL, from: URL): Promise<Metadata>;
  /**
   * Returns the formats of `media`, best first, each with a unique `format_id`. Fetches the first
   * `maxManifests` manifests concurrently; one that cannot be fetched is listed as a format itself, one
   * that cannot be parsed is left out.
   */
  listFormats(media: readonly Medium[], from: URL): Promise<FormatListing>;
  /**
   * Returns what a player's page at `url` is; null if it cannot be fetched, is of another kind, or is the page itself
   * or a player's page that was fetched before.
   */
  fetchPlayer(url: URL, from: URL): Promise<{ content: Content; url: URL } | null>;
  /** Returns what the HLS playlist at `url` lists; null if it cannot be fetched or parsed. */
  fetchPlaylist(url: URL, from: URL): Promise<Manifest | null>;
  /**
   * Returns what the server and the first 64 KiB tell of the file at `url`; null if it cannot be fetched or is no media
   * file.
   */
  fetchFileFacts(url: URL, from: URL): Promise<FileFacts | null>;
}

/** `hasManifest`: at least one manifest was read. */
export interface FormatListing extends Manifest {
  hasManifest: boolean;
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
  cookies: CookieJar;
  /** URL of the page. */
  pageUrl: URL;
  /** Of all requests together, from the first one on. */
  timeoutMs: number;
  /** Limit of a player's page, decoded bytes. */
  pageMaxBytes: number;
}

/** Creates a fetcher whose methods reject only when `signal` is aborted. */
export function createLinkFetcher(options: LinkFetcherOptions): LinkFetcher {
  const { client, slices, signal, cookies, pageUrl, timeoutMs, pageMaxBytes } = options;
  const readPages = new Set([pageKey(pageUrl)]);
  let linkSignal: AbortSignal | undefined;

  return {
    async fetchOembed(url, from) {
      const metadata = await tryRequest(async (requestSignal) => {
        const fetched = await fetchText(url, from, maxOembedBytes, requestSignal);
        return extractOembed(fetched.text, fetched.type, fetched.url);
      });
      return metadata instanceof ServiceError ? {} : metadata;
    },

    async listFormats(media, from) {
      const manifests = media.filter(({ protocol }) => protocol !== "https").slice(0, maxManifests);
      const results = manifests.map(
        async (medium) =>
          [
            medium,
            await tryRequest((requestSignal) => readManifest(medium, from, requestSignal)),
          ] as const,
      );
      return slices.run(createListing(media, new Map(await Promise.all(results))), signal);
    },

    async fetchPlayer(url, from) {
      const key = pageKey(url);
      if (readPages.has(key)) return null;
      readPages.add(key);
      const page = await tryRequest(async (requestSignal) => {
        const limits = { signal: requestSignal, maxBytes: pageMaxBytes };
        const response = await get(url, from, { ...limits, accept: acceptPage });
        return { content: await readContent(response, slices, requestSignal), url: response.url };
      });
      return page instanceof ServiceError ? null : page;
    },

    async fetchPlaylist(url, from) {
      const playlist = await tryRequest((requestSignal) =>
        readManifest({ url, protocol: "m3u8" }, from, requestSignal),
      );
      return playlist instanceof ServiceError ? null : playlist;
    },

    async fetchFileFacts(url, from) {
      const facts = await tryRequest(async (requestSignal) => {
        // The body is left before any limit: it may be endless.
        const limits = { signal: requestSignal, maxBytes: Number.MAX_SAFE_INTEGER };
        return readFileFacts(
          await get(url, from, { ...limits, identity: true, range: firstBytes }),
        );
      });
      return facts instanceof ServiceError ? null : facts;
    },
  };

  async function readManifest(
    { url, protocol }: Pick<Medium, "url" | "protocol">,
    from: URL,
    requestSignal: AbortSignal,
  ): Promise<Manifest> {
    const fetched = await fetchText(url, from, maxManifestBytes, requestSignal);
    const read = protocol === "m3u8" ? readHlsInSteps : readMpd;
    return slices.run(read(fetched.text, fetched.url), signal);
  }

  async function fetchText(url: URL, from: URL, maxBytes: number, requestSignal: AbortSignal) {
    const response = await get(url, from, { signal: requestSignal, maxBytes });
    return {
      text: await readText(response.body),
      type: response.headers.get("content-type") ?? null,
      url: response.url,
    };
  }

  function get(url: URL, from: URL, request: GetOptions) {
    return client.get(url, { ...request, headers: createPageHeaders(from), cookies });
  }

  /** Returns the request's result or its error; rejects only when `signal` is aborted. */
  async function tryRequest<T>(
    request: (requestSignal: AbortSignal) => Promise<T>,
  ): Promise<T | ServiceError> {
    linkSignal ??= AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return await request(linkSignal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ServiceError) return error;
      if (!linkSignal.aborted) throw error;
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
  const manifests = [...results.values()].filter(
    (result): result is Manifest => !(result instanceof ServiceError),
  );
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
