import { ServiceError } from "../../../model/errors.ts";
import { bestAudio, byQuality, hasVideo } from "../../../model/format-ranking.ts";
import { resolveSegmentUrl } from "../../../manifests/segment-url.ts";
import type { SegmentList } from "../../../manifests/segments.ts";
import type { HeadersFor, HttpClient } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import { createSiteHeaders } from "../../../net/http/site-headers.ts";
import type { DownloadFormat, Format, Fragment } from "../../../model/page-info.ts";
import { ManifestReader } from "./manifest-reader.ts";

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
  | { kind: "file"; url: URL }
  | {
      kind: "segments";
      list: SegmentList;
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

export function createFormatLocator(
  client: HttpClient,
  { pageUrl, signal }: { pageUrl: string; signal: AbortSignal },
): FormatLocator {
  const manifests = new ManifestReader(client, signal);
  const locate: FormatLocator = async (format, headers = createSiteHeaders(format, pageUrl)) => {
    const located = { format, audio: null, headers };
    const url = new URL(format.url);
    if (format.fragments !== undefined) {
      const list = segmentsOf(format.fragments, url);
      return { ...located, media: { kind: "segments", list, reload: async () => list } };
    }
    if (format.protocol === "https") {
      const protocol = await manifests.sniffProtocol(url, format, headers);
      if (protocol === null) return { ...located, media: { kind: "file", url } };
      return locate({ ...format, protocol, manifest_url: format.url }, headers);
    }
    const { formats, segments } = await manifests.open(format, headers);
    if (formats !== null) {
      const { best, audio } = chooseFrom(formats, format);
      return { ...(await locate(best, headers)), audio };
    }
    const reload = async () => (await manifests.open(format, headers)).segments();
    return { ...located, media: { kind: "segments", list: segments(), reload } };
  };
  return locate;
}

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

/** Chooses from the formats that the manifest of `parent` lists. */
function chooseFrom(formats: readonly Format[], parent: Format): { best: Format; audio: Format | null } {
  const ranked = formats
    // A playlist that lists itself would be read forever.
    .filter(({ protocol, url }) => protocol !== "m3u8" || url !== parent.url)
    .filter(({ has_drm }) => !has_drm)
    .toSorted(byQuality);
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
