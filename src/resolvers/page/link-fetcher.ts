import { text as readText } from "node:stream/consumers";
import { ServiceError } from "../../errors.ts";
import { readMpd } from "../../manifests/dash.ts";
import { createFormatIds } from "../../manifests/format-ids.ts";
import { readHlsInSteps } from "../../manifests/hls.ts";
import type { Manifest } from "../../manifests/manifest.ts";
import type { HttpClient } from "../../net/client.ts";
import type { Format } from "../../page-info.ts";
import type { Steps, TimeSlices } from "../../parsers/steps.ts";
import { type Content, readContent } from "./content.ts";
import { bestFormats, createFormat } from "./formats.ts";
import type { Metadata } from "./metadata.ts";
import type { Medium } from "./resources.ts";
import { extractOembed } from "./vocabularies/oembed.ts";

/** Sends the requests that a page leads to. */
export interface LinkFetcher {
  /** Returns what the oEmbed response at `url` states; {} if it cannot be fetched or parsed. */
  fetchOembed(url: URL): Promise<Metadata>;
  /**
   * Returns the formats of `media`, best first, each with a unique `format_id`. Fetches the first
   * `maxManifests` manifests concurrently; one that cannot be fetched is listed as a format itself, one
   * that cannot be parsed is left out.
   */
  listFormats(media: readonly Medium[]): Promise<FormatListing>;
  /** Returns what a player's page at `url` is; null if it cannot be fetched or is of another kind. */
  fetchPlayer(url: URL): Promise<{ content: Content; url: URL } | null>;
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
  /** Of each request. */
  timeoutMs: number;
  /** Limit of a player's page, decoded bytes. */
  pageMaxBytes: number;
}

/** Creates a fetcher whose methods reject only when `signal` is aborted. */
export function createLinkFetcher(options: LinkFetcherOptions): LinkFetcher {
  const { client, slices, signal, timeoutMs, pageMaxBytes } = options;
  return {
    async fetchOembed(url) {
      const metadata = await attempt(async (requestSignal) => {
        const fetched = await fetchText(url, maxOembedBytes, requestSignal);
        return extractOembed(fetched.text, fetched.type, fetched.url);
      });
      return metadata instanceof ServiceError ? {} : metadata;
    },

    async listFormats(media) {
      const manifests = media.filter(({ protocol }) => protocol !== "https").slice(0, maxManifests);
      const results = manifests.map(
        async (medium) =>
          [medium, await attempt((requestSignal) => readManifest(medium, requestSignal))] as const,
      );
      return slices.run(createListing(media, new Map(await Promise.all(results))), signal);
    },

    async fetchPlayer(url) {
      const page = await attempt(async (requestSignal) => {
        const response = await client.get(url, {
          signal: requestSignal,
          maxBytes: pageMaxBytes,
          accept: acceptPage,
        });
        return { content: await readContent(response, slices, requestSignal), url: response.url };
      });
      return page instanceof ServiceError ? null : page;
    },
  };

  async function readManifest(
    { url, protocol }: Medium,
    requestSignal: AbortSignal,
  ): Promise<Manifest> {
    const fetched = await fetchText(url, maxManifestBytes, requestSignal);
    const read = protocol === "m3u8" ? readHlsInSteps : readMpd;
    return slices.run(read(fetched.text, fetched.url), signal);
  }

  async function fetchText(url: URL, maxBytes: number, requestSignal: AbortSignal) {
    const response = await client.get(url, { signal: requestSignal, maxBytes });
    return {
      text: await readText(response.body),
      type: response.headers.get("content-type") ?? null,
      url: response.url,
    };
  }

  /** Returns the request's result or its error; rejects only when `signal` is aborted. */
  async function attempt<T>(
    request: (requestSignal: AbortSignal) => Promise<T>,
  ): Promise<T | ServiceError> {
    const requestSignal = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return await request(requestSignal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ServiceError) return error;
      if (!requestSignal.aborted) throw error;
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
