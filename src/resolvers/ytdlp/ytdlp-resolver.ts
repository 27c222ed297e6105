import { Shares } from "../../async/shares.ts";
import { joinSubtitles } from "../../manifests/manifest.ts";
import { isServiceError, ServiceError } from "../../model/errors.ts";
import type { BlockObserver, Lookup } from "../../net/addresses/address-guard.ts";
import type { HttpClient } from "../../net/client.ts";
import { openGuardedProxy } from "../../net/proxy/guarded-proxy.ts";
import { urlForMessage } from "../../net/http-url.ts";
import { PageInfo, publicInfo } from "../../model/page-info.ts";
import { createBodies } from "../page/reader/bodies.ts";
import type { Reader } from "../page/reader/reader.ts";
import { startOf } from "../entries.ts";
import type { ResolveContext, Resolver } from "../resolver.ts";
import { findMissingFormatsError, MediumGoneError } from "./failures.ts";
import { readFormats } from "./formats.ts";
import { asList, asObject, asText } from "../../parsers/json-values.ts";
import { listManifestFormats } from "./manifest-formats.ts";
import { isGuess, type PageFields, readNothing, readPlaylist, readVideo, videoOf } from "./page-fields.ts";
import { hasHlsSubtitles, readSubtitles } from "./subtitles.ts";
import { type ExtractOptions, openYtDlp, type YtDlp, type YtDlpOptions } from "./yt-dlp.ts";
import { SharedCache } from "../../async/shared-cache.ts";
import { maxEntries } from "../../model/entry.ts";

export interface YtDlpResolverOptions {
  /** The resolver closes it. */
  ytDlp: YtDlp;
  /** Fetches manifests. The resolver does not close it. */
  client: HttpClient;
  /** Reads manifests. The resolver does not close it. */
  reader: Reader;
  /** Default: the system's clock. */
  now?: () => Date;
}

export interface YtDlpResolver extends Resolver<typeof PageInfo> {
  /**
   * Returns the name of yt-dlp's extractor for this URL, `null` if only the generic one suits; requests nothing.
   *
   * @throws ServiceError of `YtDlp.findExtractor`; `signal.reason`
   */
  findExtractor(url: URL, signal: AbortSignal, owner?: string): Promise<string | null>;
}

export type YtDlpResolverDeps = Pick<YtDlpResolverOptions, "client" | "reader"> & {
  /** Private networks that may be fetched, in CIDR notation. */
  allowNetworks: readonly string[];
  ytDlp: Omit<YtDlpOptions, "proxy">;
  /** As in `AddressGuardOptions`, of the proxy. */
  lookup: Lookup;
  /** The same. */
  onBlocked?: BlockObserver | undefined;
};

/**
 * Opens yt-dlp behind a guarded proxy, and the resolver that closes both. Returns undefined if there is none
 * that can be used.
 *
 * @throws Error of `openYtDlp`
 */
export async function openYtDlpResolver(deps: YtDlpResolverDeps): Promise<YtDlpResolver | undefined> {
  await using opened = new AsyncDisposableStack();
  const { allowNetworks, lookup, onBlocked } = deps;
  // One extraction more than that may run.
  const maxConnections = Math.max(1_024, (deps.ytDlp.concurrency + 1) * filesOfAnExtraction);
  const proxy = await openGuardedProxy({ allowNetworks, lookup, onBlocked, maxConnections });
  opened.defer(() => proxy.close());
  const ytDlp = await openYtDlp({ ...deps.ytDlp, proxy });
  if (ytDlp === undefined) return undefined;
  const resolver = createYtDlpResolver({ ...deps, ytDlp });
  opened.defer(() => resolver.close());
  const both = opened.move();
  return { ...resolver, close: () => both.disposeAsync() };
}

/** Files and connections that one may have open, as `python/sandbox.py` limits them. */
const filesOfAnExtraction = 128;

const name = "yt-dlp";

/**
 * Creates a resolver that asks yt-dlp what is on a page. A playlist has `entries` and no formats. A page on
 * which yt-dlp finds no medium is a record without formats.
 *
 * `resolve` rejects with `invalid_request` for a cursor of others, and with the errors of `YtDlp.extract`, except `no_media`. For a download, it also rejects if
 * yt-dlp knows why there are no formats: `drm_protected`, `live_stream`, `login_required` and the like, or `no_media` if the site says so.
 */
export function createYtDlpResolver(options: YtDlpResolverOptions): YtDlpResolver {
  const { ytDlp, client, reader, now = () => new Date() } = options;
  const deps = { client, reader, bodies: createBodies() };
  const extract = readAhead(ytDlp);
  /** To ask about a URL takes milliseconds, one after the other, and a request may have hundreds. */
  const turns = new Shares(2, "spare");
  return {
    name,
    output: PageInfo,
    unenforced: ytDlp.unenforced,
    findExtractor: (url, signal, owner = "") => turns.run(owner, signal, () => ytDlp.findExtractor(url, signal)),
    identify: (url, signal, owner = "") => turns.run(owner, signal, () => ytDlp.identify(url, signal)),
    async resolve(url, context) {
      context.signal.throwIfAborted();
      const { signal, owner, entriesCursor, forDownload = false } = context;
      const entriesStart = startOf(entriesCursor, name);
      const fetchedAt = now();
      const info = await extract(url, { signal, owner, entriesStart }).catch((error: unknown) => {
        if (isServiceError(error, "no_media") && !(forDownload && error instanceof MediumGoneError)) return null;
        throw error;
      });
      const fields = info === null ? readNothing(url) : await readFields(info, url, entriesStart, context, deps);
      const extractor = asText(asObject(info)["extractor_key"])?.slice(0, 200) ?? null;
      const page = {
        url: url.href,
        ...fields,
        resolver: name,
        ...(extractor !== null && { extractor }),
        extractor_version: ytDlp.version,
        fetched_at: fetchedAt.toISOString(),
      };
      return forDownload ? page : publicInfo(page);
    },
    close: () => ytDlp.close(),
  };
}

interface ReadFieldsDeps extends Pick<YtDlpResolverOptions, "client" | "reader"> {
  bodies: ReturnType<typeof createBodies>;
}

/** Reads what yt-dlp has extracted: a video, with the formats of its manifests, or the entries of a playlist from `start` on. */
async function readFields(
  info: unknown,
  url: URL,
  start: number,
  context: ResolveContext,
  { client, reader, bodies }: ReadFieldsDeps,
): Promise<PageFields> {
  const { signal, owner, forDownload = false, deadlineMs = Infinity } = context;
  const dict = asObject(info);
  if (isGuess(dict, url)) {
    const what = "neither a web page nor media that yt-dlp knows";
    throw new ServiceError("upstream_invalid", `${urlForMessage(url)} is ${what}`);
  }
  const video = start === 0 ? videoOf(dict) : null;
  if (video === null) return readPlaylist(dict, url, start);
  const listed = await readFormats(video, url, { allFragments: forDownload, signal });
  using opened = bodies.open({ signal, owner });
  const { formats, subtitles, unread } = await listManifestFormats(listed, {
    client,
    reader,
    bodies: opened,
    pageUrl: url.href,
    signal,
    owner,
    hasHlsSubtitles: hasHlsSubtitles(readSubtitles(video["subtitles"], url)),
    deadlineMs,
  });
  if (forDownload && formats.length === 0) {
    const { _warnings } = dict;
    const reason = findMissingFormatsError({ ...video, _warnings }, `yt-dlp for ${urlForMessage(url)}`);
    const error = reason ?? unread[0]?.error;
    if (error !== undefined) throw error;
  }
  const fields = withSubtitles(readVideo(video, formats, url), subtitles);
  return unread.length === 0 ? fields : { ...fields, warnings: unread.slice(0, 8).map(({ warning }) => warning) };
}

/** Adds the subtitles that manifests list, which say more than yt-dlp does of the same. */
function withSubtitles(fields: PageFields, listed: PageInfo["subtitles"]): PageFields {
  if (Object.keys(listed).length === 0) return fields;
  const sources = { subtitles: "manifest" as const, ...fields.sources };
  const urls = new Set(Object.values(listed).flatMap((subtitles) => subtitles.map(({ url }) => url)));
  const others = Object.entries(fields.subtitles).map(
    ([language, subtitles]) =>
      [language, subtitles.filter(({ url, ext }) => !urls.has(url) || (ext !== "m3u8" && ext !== null))] as const,
  );
  return { ...fields, subtitles: joinSubtitles([Object.fromEntries(others), listed]), sources };
}

/** Most entries that are read ahead. */
const maxAhead = 1_000;

/** Size of all that is kept, characters of JSON, shared by owners, and how long it is kept. */
const maxSize = 16 * 1024 * 1024;
const ttlMs = 300_000;

/** A part of a playlist, as yt-dlp's info dict. */
interface Part {
  start: number;
  info: object;
  entries: readonly unknown[];
  hasMore: boolean;
}

/**
 * Returns an `extract` for lists that yt-dlp can read only from their start. Of such a list it reads ahead as many entries as come before the
 * requested ones, and keeps them for the owner's next requests, until the owner reads the list again from its start.
 */
export function readAhead({ extract }: Pick<YtDlp, "extract">): YtDlp["extract"] {
  const parts = new SharedCache<Part>({ maxSize, ttlMs });

  return async (url: URL, options: ExtractOptions) => {
    const { owner = "", entriesStart: start = 0 } = options;
    const key = url.href;
    if (start === 0) {
      parts.delete(owner, key);
      return extract(url, options);
    }
    const kept = parts.get(owner, key);
    if (kept !== undefined && hasNext(kept, start)) {
      return { ...kept.info, entries: kept.entries.slice(start - kept.start) };
    }
    const info = await extract(url, { ...options, entriesAhead: Math.min(start, maxAhead) });
    const { entries, _has_more: hasMore } = asObject(info);
    const part = { start, info: asObject(info), entries: asList(entries), hasMore: hasMore === true };
    if (part.entries.length > maxEntries) parts.set(owner, key, part, JSON.stringify(info).length);
    return info;
  };
}

/** Whether all that `extract` would return from there on, at least, is there. */
function hasNext(part: Part, start: number): boolean {
  const left = part.start + part.entries.length - start;
  return start > part.start && left > 0 && (left >= maxEntries || !part.hasMore);
}
