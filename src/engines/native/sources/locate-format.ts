import { isUpstreamError, ServiceError } from "../../../model/errors.ts";
import { bestAudio, byQuality, hasVideo } from "../../../model/format-ranking.ts";
import { resolveSegmentUrl, type SegmentList } from "../../../manifests/segments.ts";
import type { HeadersFor, HttpClient } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import { createSiteHeaders } from "../../../net/http/site-headers.ts";
import type { DownloadFormat, Format, Fragment } from "../../../model/page-info.ts";
import type { FormatPreference } from "../../engine.ts";
import { ManifestReader, type SegmentMirror } from "./manifest-reader.ts";

/** A format that can be fetched. */
export interface LocatedFormat {
  /** The format asked for, or the best one that its manifest lists. */
  format: Format;
  /** Its separate audio, if it was chosen from a manifest. */
  audio: Format | null;
  /** Of every request for its media, and for that of `audio`. */
  headers: HeadersFor;
  media: MediaLocation;
}

export type MediaLocation =
  | { kind: "file"; url: URL; mirrors: AsyncIterable<URL> }
  | {
      kind: "segments";
      list: SegmentList;
      /** Further lists of the same segments, at other places. */
      mirrors: AsyncIterable<SegmentList>;
      /** Reads the current list. */
      reload: () => Promise<SegmentList>;
    };

/**
 * Reads the manifests from a format to its file or segments. `headers` are those of every request; default
 * what the format itself demands.
 *
 * @throws ServiceError of the client, `drm_protected`, `live_stream`, `format_unavailable`;
 * `upstream_invalid` for an invalid manifest.
 */
export type FormatLocator = (format: DownloadFormat, headers?: HeadersFor) => Promise<LocatedFormat>;

/** Creates a locator of the formats of one page, of which those of a manifest that was not read before are chosen by `preference`. */
export function createFormatLocator(
  client: HttpClient,
  { pageUrl, preference, signal }: { pageUrl: string; preference: FormatPreference; signal: AbortSignal },
): FormatLocator {
  const manifests = new ManifestReader(client, signal);
  const locate: FormatLocator = async (format, headers = createSiteHeaders(format, pageUrl)) => {
    const located = { format, audio: null, headers };
    const url = new URL(format.url);
    if (format.fragments !== undefined) {
      const list = segmentsOf(format.fragments, url);
      return { ...located, media: { kind: "segments", list, mirrors: none(), reload: async () => list } };
    }
    if (format.protocol === "https") {
      const protocol = await manifests.sniffProtocol(url, format, headers);
      const mirrors = manifests.mirrorsOfFile(format, headers);
      if (protocol === null) return { ...located, media: { kind: "file", url, mirrors } };
      return locate({ ...format, protocol, manifest_url: format.url }, headers);
    }
    const { formats, list, reload } = await openAnywhere(format, headers);
    if (formats !== null) {
      const { best, audio } = chooseFrom(formats, format, preference);
      return { ...(await locate(best, headers)), audio };
    }
    const mirrors = () => manifests.mirrors(format, headers);
    const media = list.hasEnded
      ? { list, mirrors: listsOf(mirrors()), reload }
      : { list, mirrors: none(), reload: withFailover(reload, mirrors) };
    return { ...located, media: { kind: "segments", ...media } };
  };
  return locate;

  /** Opens the manifest of a format, or another place of its segments if the site does not serve it. */
  async function openAnywhere(format: Format, headers: HeadersFor) {
    try {
      const { formats, segments } = await manifests.open(format, headers);
      if (formats !== null) return { formats };
      return { formats, list: segments(), reload: () => manifests.reload(format, headers) };
    } catch (error) {
      if (!isUpstreamError(error)) throw error;
      for await (const mirror of manifests.mirrors(format, headers)) return { formats: null, ...mirror };
      throw error;
    }
  }
}

/**
 * Reads a live list from another place once its own fails, until that one fails too. Only their dates show which segments
 * of two lists are the same (not their numbers, RFC 8216 §4.3.3.2), so a list without dates is not used.
 */
function withFailover(own: SegmentMirror["reload"], mirrors: () => AsyncIterable<SegmentMirror>) {
  let current = own;
  return async (): Promise<SegmentList> => {
    try {
      return await current();
    } catch (error) {
      if (!isUpstreamError(error)) throw error;
      const isOwn = current === own;
      current = own;
      if (!isOwn) throw error;
      for await (const { list, reload } of mirrors()) {
        if (!list.segments.every(({ dateMs }) => dateMs !== undefined)) continue;
        current = reload;
        return list;
      }
      throw error;
    }
  };
}

async function* listsOf(mirrors: AsyncIterable<SegmentMirror>): AsyncGenerator<SegmentList> {
  for await (const { list } of mirrors) yield list;
}

async function* none(): AsyncGenerator<never> {}

/** As many as a manifest of the largest size lists. */
const maxFragments = 200_000;

/**
 * Returns the segment list of a format that lists its fragments. The initialisation segment needs no
 * mark: the bytes are read in this order.
 *
 * @param base What relative URLs relate to, and messages name
 * @throws ServiceError of `resolveSegmentUrl`; `format_unavailable` for no fragment or more than 200,000
 */
function segmentsOf(fragments: readonly Fragment[], base: URL): SegmentList {
  if (fragments.length === 0 || fragments.length > maxFragments) {
    const rule = `must have 1 to ${maxFragments} fragments, it has ${fragments.length}`;
    throw new ServiceError("format_unavailable", `the format ${rule}`);
  }
  const segments = fragments.map(({ url, duration }, sequence) => ({
    url: resolveSegmentUrl(url, base, base).href,
    range: null,
    init: null,
    key: null,
    durationS: duration ?? 0,
    sequence,
    timeline: 0,
    offsetS: 0,
  }));
  return { segments, hasEnded: true, refreshS: 0 };
}

/** Chooses from the formats that the manifest of `parent` lists; one that is too tall only if all are. */
function chooseFrom(
  formats: readonly Format[],
  parent: Format,
  { max_height = Infinity, preferred_codecs }: FormatPreference,
): { best: Format; audio: Format | null } {
  const rankOf = (format: Format) => Number(!hasVideo(format)) * 2 + Number((format.height ?? 0) > max_height);
  const ranked = formats
    // A playlist that lists itself would be read forever.
    .filter(({ protocol, url }) => protocol !== "m3u8" || url !== parent.url)
    .filter(({ has_drm }) => !has_drm)
    .toSorted((a, b) => rankOf(a) - rankOf(b) || byQuality(a, b, preferred_codecs));
  const [best] = ranked;
  if (best === undefined) {
    const url = urlForMessage(new URL(parent.url));
    throw formats.some(({ has_drm }) => has_drm)
      ? new ServiceError("drm_protected", `all formats of ${url} are DRM protected`)
      : new ServiceError("format_unavailable", `${url} lists no format that can be fetched`);
  }
  const audioOnly = ranked.filter((format) => !hasVideo(format));
  return { best, audio: hasVideo(best) ? bestAudio(audioOnly, null) : null };
}

/** Places of the same media, of which one that fails is replaced by another. */
export class Mirrors<Place> {
  /** Those asked for so far; the first is where the media are listed. `undefined`: there are no more. */
  readonly #places: Promise<Place | undefined>[];
  readonly #others: AsyncIterator<Place>;
  /** Index of the one that served last. */
  #current = 0;

  constructor(first: Place, others: AsyncIterable<Place>) {
    this.#places = [Promise.resolve(first)];
    this.#others = others[Symbol.asyncIterator]();
  }

  /**
   * Calls `fetch` with a place and its index: the one that served last, and after a failure of its site the others in their order.
   *
   * @throws the error of the first call, if no place serves; at once if it is not an upstream error.
   */
  async fetch<T>(fetch: (place: Place, index: number) => Promise<T>): Promise<T> {
    const start = this.#current;
    try {
      return await fetch((await this.#at(start))!, start);
    } catch (error) {
      if (!isUpstreamError(error)) throw error;
      for (let index = 0; ; index += 1) {
        const place = await this.#at(index);
        if (place === undefined) throw error;
        if (index === start) continue;
        try {
          const fetched = await fetch(place, index);
          this.#current = index;
          return fetched;
        } catch (next) {
          if (!isUpstreamError(next)) throw next;
        }
      }
    }
  }

  #at(index: number): Promise<Place | undefined> {
    return (this.#places[index] ??= this.#others.next().then(({ done, value }) => (done === true ? undefined : value)));
  }
}
