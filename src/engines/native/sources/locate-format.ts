import { text as readText } from "node:stream/consumers";
import { ServiceError } from "../../../model/errors.ts";
import { bestAudio, byQuality, hasVideo } from "../../../model/format-ranking.ts";
import { type OpenMpd, openMpd } from "../../../manifests/dash/dash.ts";
import { findFormat } from "../../../manifests/format-ids.ts";
import { readHls } from "../../../manifests/hls/hls.ts";
import { isMultivariant } from "../../../manifests/hls/lines.ts";
import { readHlsSegments } from "../../../manifests/hls/segments.ts";
import type { SegmentList } from "../../../manifests/segments.ts";
import type { HeadersFor, HttpClient } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import { createSiteHeaders } from "../../../net/http/site-headers.ts";
import type { DownloadFormat, Format } from "../../../model/page-info.ts";
import { segmentsOf } from "./fragments.ts";
import { sniffProtocol } from "./sniff-protocol.ts";

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
export type FormatLocator = (
  format: DownloadFormat,
  headers?: HeadersFor,
) => Promise<LocatedFormat>;

const maxManifestBytes = 4 * 1024 * 1024;

export function createFormatLocator(
  client: HttpClient,
  { pageUrl, signal }: { pageUrl: string; signal: AbortSignal },
): FormatLocator {
  const mpds = new Map<string, OpenMpd>();

  async function locate(
    format: DownloadFormat,
    headers = createSiteHeaders(format, pageUrl),
  ): Promise<LocatedFormat> {
    const located = { format, audio: null, headers };
    const url = new URL(format.url);
    if (format.fragments !== undefined) {
      const list = segmentsOf(format.fragments, url);
      return { ...located, media: { kind: "segments", list, reload: async () => list } };
    }
    if (format.protocol === "https") {
      const protocol = await sniffProtocol(url, format, { client, headers, signal });
      if (protocol === null) return { ...located, media: { kind: "file", url } };
      return locate({ ...format, protocol, manifest_url: format.url }, headers);
    }
    const { formats, segments } = await openManifest(format, url, headers);
    if (formats !== null) {
      const { best, audio } = chooseFrom(formats, format);
      return { ...(await locate(best, headers)), audio };
    }
    const reload = async () => (await openManifest(format, url, headers)).segments();
    return { ...located, media: { kind: "segments", list: segments(), reload } };
  }

  async function openManifest(
    format: Format,
    url: URL,
    headers: HeadersFor,
  ): Promise<OpenManifest> {
    const isUnread = format.url === format.manifest_url;
    if (format.protocol === "m3u8") {
      const { text, finalUrl } = await fetchManifest(url, headers);
      const formats = isUnread && isMultivariant(text) ? readHls(text, finalUrl).formats : null;
      return { formats, segments: () => readHlsSegments(text, finalUrl) };
    }
    const { listing, segments } = await openMpdAt(url, headers);
    const isListed = findFormat(listing.formats, format.format_id) !== undefined;
    const formats = isUnread && !isListed && listing.formats.length > 0 ? listing.formats : null;
    return { formats, segments: () => segments(format.format_id) };
  }

  /** Fetches and parses an MPD once for all of its formats. */
  async function openMpdAt(url: URL, headers: HeadersFor): Promise<OpenMpd> {
    const known = mpds.get(url.href);
    if (known !== undefined) return known;
    const { text, finalUrl } = await fetchManifest(url, headers);
    const mpd = openMpd(text, finalUrl);
    mpds.set(url.href, mpd).set(finalUrl.href, mpd);
    return mpd;
  }

  async function fetchManifest(
    url: URL,
    headers: HeadersFor,
  ): Promise<{ text: string; finalUrl: URL }> {
    const response = await client.get(url, { signal, headers, maxBytes: maxManifestBytes });
    return { text: await readText(response.body), finalUrl: response.url };
  }

  return locate;
}

interface OpenManifest {
  /** To choose from if the manifest was not read before; `null`: `segments` are those of the format. */
  formats: readonly Format[] | null;
  segments(): SegmentList;
}

/** Chooses from the formats that the manifest of `parent` lists. */
function chooseFrom(
  formats: readonly Format[],
  parent: Format,
): { best: Format; audio: Format | null } {
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
