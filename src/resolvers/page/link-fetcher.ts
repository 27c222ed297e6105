import { type Deadline, orServiceError, startDeadline } from "../../async/deadline.ts";
import { ServiceError } from "../../model/errors.ts";
import { maxLinkedBytes } from "../../manifests/dash/links.ts";
import { createFormatIds, joinSubtitles, type Manifest, maxManifestLength } from "../../manifests/manifest.ts";
import type { GetOptions, HttpClient } from "../../net/client.ts";
import type { CookieJar } from "../../net/cookies.ts";
import { createPageHeaders } from "../../net/http/site-headers.ts";
import type { Format, InfoWarning } from "../../model/page-info.ts";
import type { StatedChapter } from "../../model/entry.ts";
import { pageKey } from "../../parsers/url.ts";
import { type Content, type FileInfo, firstBytes, readContent, readFileInfo } from "./content.ts";
import { bestFormats } from "../../model/format-ranking.ts";
import { createFormat, type Medium } from "./formats.ts";
import type { Metadata } from "./metadata.ts";
import type { RequestBodies } from "./reader/bodies.ts";
import { type Reader, readManifest } from "./reader/reader.ts";

/** `hasManifest`: at least one manifest was read. */
export interface FormatListing extends Manifest {
  hasManifest: boolean;
  warnings?: InfoWarning[];
}

/** A manifest, its URL after redirects. */
interface FetchedManifest {
  protocol: Medium["protocol"];
  body: Uint8Array[];
  url: URL;
}

/** Value of the `Accept` field for a page. */
export const acceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

const maxManifests = 3;
const maxOembedBytes = 512 * 1024;
const maxChapterBytes = 1024 * 1024;

interface LinkFetcherOptions {
  client: HttpClient;
  reader: Reader;
  bodies: RequestBodies;
  signal: AbortSignal;
  owner: string | undefined;
  cookies: CookieJar;
  pageUrl: URL;
  /** Of all requests together, from the first one on. */
  timeoutMs: number;
  /** Limit of a player's page, decoded bytes. */
  pageMaxBytes: number;
  /** When the page was asked for. */
  now: Date;
}

/**
 * Sends the requests that a page leads to, as a browser does: with the `Referer` of the page `from`, and the cookies
 * of the jar, which keeps those that responses set. Its methods reject only when the signal is aborted, except
 * `readManifest`. Dispose of it after the last request.
 */
export class LinkFetcher implements Disposable {
  readonly #options: LinkFetcherOptions;
  readonly #readPages: Set<string>;
  #deadline: Deadline | undefined;

  constructor(options: LinkFetcherOptions) {
    this.#options = options;
    this.#readPages = new Set([pageKey(options.pageUrl)]);
  }

  [Symbol.dispose](): void {
    this.#deadline?.end();
  }

  /** Returns what the oEmbed response at `url` states; {} if it cannot be fetched or parsed. */
  async fetchOembed(url: URL, from: URL): Promise<Metadata> {
    const metadata = await this.#tryOrNull(async (signal) => {
      const { owner, reader } = this.#options;
      const { body, ...fetched } = await this.#fetchBody(url, from, { signal, maxBytes: maxOembedBytes });
      return reader.read({ kind: "oembed", ...fetched }, body, { owner, signal });
    });
    return metadata ?? {};
  }

  /** Returns what the file of chapters at `url` states; nothing if it cannot be fetched or parsed. */
  async fetchChapters(url: URL, from: URL): Promise<StatedChapter[]> {
    const chapters = await this.#tryOrNull(async (signal) => {
      const { owner, reader } = this.#options;
      const { body, url: final } = await this.#fetchBody(url, from, { signal, maxBytes: maxChapterBytes });
      return reader.read({ kind: "chapters", url: final }, body, { owner, signal });
    });
    return chapters ?? [];
  }

  /**
   * Returns the formats of `media`, best first, each with a unique `format_id`. Fetches the first
   * `maxManifests` manifests concurrently; one that cannot be fetched is listed as a format itself, one
   * that cannot be parsed is left out, with a warning.
   */
  async listFormats(media: readonly Medium[], from: URL): Promise<FormatListing> {
    const manifests = media.filter(({ protocol }) => protocol !== "https").slice(0, maxManifests);
    const results = manifests.map(async (medium) => {
      const read = (signal: AbortSignal) => this.#readManifest(medium, from, signal);
      return [medium, await this.#try(read)] as const;
    });
    const byMedium = new Map(await Promise.all(results));
    return createListing(media, byMedium);
  }

  /**
   * Returns what is at `url`, which the page `from` leads to: to a player's page (`isPlayer`), or as a redirect does. Null if it
   * cannot be fetched, is of another kind, or is the page itself or one that was fetched before.
   */
  async fetchPage(
    url: URL,
    from: URL,
    { isPlayer, entriesStart }: { isPlayer: boolean; entriesStart: number },
  ): Promise<{ content: Content; url: URL } | null> {
    const { pageMaxBytes } = this.#options;
    const key = pageKey(url);
    if (this.#readPages.has(key)) return null;
    this.#readPages.add(key);
    return this.#tryOrNull(async (signal) => {
      const limits = { signal, maxBytes: pageMaxBytes };
      const response = await this.#get(url, from, { ...limits, accept: acceptPage });
      const content = await readContent(response, { ...this.#options, signal, isPlayer, entriesStart });
      return { content, url: response.url };
    });
  }

  /**
   * Returns what a manifest lists, with the remote elements of an MPD. If no page leads to it (`from` is null), only
   * requests are limited in time.
   *
   * Rejects with the errors of the parsers and the requests.
   */
  async readManifest(manifest: FetchedManifest, from: URL | null): Promise<Manifest> {
    if (from === null) return this.#parseManifest(manifest, manifest.url, this.#options.signal);
    return this.#parseManifest(manifest, from, this.#linkSignal);
  }

  /** Returns what the HLS playlist at `url` lists; null if it cannot be fetched or parsed. */
  async fetchPlaylist(url: URL, from: URL): Promise<Manifest | null> {
    return this.#tryOrNull((signal) => this.#readManifest({ url, protocol: "m3u8" }, from, signal));
  }

  /**
   * Returns what the server and the first 64 KiB say of the file at `url`; null if it cannot be fetched or is no media
   * file.
   */
  async fetchFileInfo(url: URL, from: URL): Promise<FileInfo | null> {
    return this.#tryOrNull(async (signal) => {
      // Reading stops before any limit applies: the body may be endless.
      const limits = { signal, maxBytes: Number.MAX_SAFE_INTEGER };
      return readFileInfo(await this.#get(url, from, { ...limits, identity: true, range: firstBytes }));
    });
  }

  async #readManifest(
    { url, protocol }: Pick<Medium, "url" | "protocol">,
    from: URL,
    signal: AbortSignal,
  ): Promise<Manifest> {
    const fetched = await this.#fetchBody(url, from, { signal, maxBytes: maxManifestLength });
    return this.#parseManifest({ ...fetched, protocol }, from, signal);
  }

  #parseManifest({ protocol, ...fetched }: FetchedManifest, from: URL, signal: AbortSignal): Promise<Manifest> {
    const { owner, reader } = this.#options;
    const fetchLinked = (link: URL) =>
      this.#fetchBody(link, from, { signal: this.#linkSignal, maxBytes: maxLinkedBytes });
    return readManifest(protocol === "m3u8" ? protocol : "dash", fetched, { reader, owner, signal, fetchLinked });
  }

  async #fetchBody(url: URL, from: URL, request: GetOptions) {
    const response = await this.#get(url, from, request);
    return {
      body: await this.#options.bodies.read(response.body, request.signal),
      contentType: response.headers.get("content-type") ?? null,
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
  #try<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T | ServiceError> {
    return orServiceError(this.#options.signal, () => request(this.#linkSignal));
  }

  /** Aborted when the time for all requests is over, which begins now if none was sent before. */
  get #linkSignal(): AbortSignal {
    const { signal, timeoutMs } = this.#options;
    this.#deadline ??= startDeadline(signal, timeoutMs, "what the page leads to");
    return this.#deadline.signal;
  }
}

function createListing(media: readonly Medium[], results: ReadonlyMap<Medium, Manifest | ServiceError>): FormatListing {
  const manifests = [...results.values()].filter((result): result is Manifest => !(result instanceof ServiceError));
  const formats = media.flatMap((medium): Format[] => {
    const result = results.get(medium);
    if (result === undefined) return [createFormat(medium)];
    if (!(result instanceof ServiceError)) return result.formats;
    return result.code === "upstream_invalid" ? [] : [createFormat(medium)];
  });
  const warnings = [...results.values()].flatMap((result): InfoWarning[] => {
    if (!(result instanceof ServiceError) || result.code !== "upstream_invalid") return [];
    return [{ code: "formats_missing", message: result.message, height: null }];
  });
  const uniqueId = createFormatIds();
  return {
    formats: bestFormats(formats).map((format) => ({ ...format, format_id: uniqueId(format.format_id) })),
    subtitles: joinSubtitles(manifests.map(({ subtitles }) => subtitles)),
    duration: manifests.find(({ duration }) => duration !== null)?.duration ?? null,
    live_status: manifests.find((each) => each.live_status !== null)?.live_status ?? null,
    hasManifest: manifests.length > 0,
    ...(warnings.length > 0 && { warnings }),
  };
}
