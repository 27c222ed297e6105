import { text as readText } from "node:stream/consumers";
import { type OpenMpd, openMpd } from "../../../manifests/dash/dash.ts";
import { findFormat } from "../../../manifests/format-ids.ts";
import { readHls } from "../../../manifests/hls/hls.ts";
import { isMultivariant } from "../../../manifests/hls/lines.ts";
import { readHlsSegments } from "../../../manifests/hls/segments.ts";
import type { SegmentList } from "../../../manifests/segments.ts";
import type { Format } from "../../../model/page-info.ts";
import type { HeadersFor, HttpClient } from "../../../net/client.ts";

export interface OpenManifest {
  /** To choose from if the manifest was not read before; `null`: `segments` are those of the format. */
  formats: readonly Format[] | null;
  segments(): SegmentList;
}

const maxManifestBytes = 4 * 1024 * 1024;
/** A manifest is recognized by its first bytes. */
const maxHeadBytes = 2048;

/** Fetches the manifests of one download, an MPD once for all of its formats. */
export class ManifestReader {
  readonly #client: HttpClient;
  readonly #signal: AbortSignal;
  readonly #mpds = new Map<string, OpenMpd>();

  constructor(client: HttpClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  /**
   * Returns the protocol of the manifest at `url`, `null` if it is none. Requests it only if the format has
   * neither extension nor media type.
   *
   * @throws ServiceError of the client; `signal.reason`
   */
  async sniffProtocol(
    url: URL,
    { ext, mime_type }: Pick<Format, "ext" | "mime_type">,
    headers: HeadersFor,
  ): Promise<"m3u8" | "dash" | null> {
    if (ext !== null || mime_type !== null) return null;
    const response = await this.#get(url, headers, Number.POSITIVE_INFINITY);
    let head = "";
    for await (const chunk of response.body) {
      head += Buffer.from(chunk).toString("latin1", 0, maxHeadBytes);
      if (head.length >= maxHeadBytes) break;
    }
    const text = head.replace(/^\xef\xbb\xbf/, "").trimStart();
    if (text.startsWith("#EXTM3U")) return "m3u8";
    return text.startsWith("<") && /<MPD[\s>]/.test(text) ? "dash" : null;
  }

  /** Opens the manifest at the URL of a format. @throws ServiceError of the client and the parsers */
  async open(format: Format, headers: HeadersFor): Promise<OpenManifest> {
    const url = new URL(format.url);
    const isUnread = format.url === format.manifest_url;
    if (format.protocol === "m3u8") {
      const { text, finalUrl } = await this.#fetch(url, headers);
      const formats = isUnread && isMultivariant(text) ? readHls(text, finalUrl).formats : null;
      return { formats, segments: () => readHlsSegments(text, finalUrl) };
    }
    const { listing, segments } = await this.#openMpd(url, headers);
    const isListed = findFormat(listing.formats, format.format_id) !== undefined;
    const formats = isUnread && !isListed && listing.formats.length > 0 ? listing.formats : null;
    return { formats, segments: () => segments(format.format_id) };
  }

  async #openMpd(url: URL, headers: HeadersFor): Promise<OpenMpd> {
    const known = this.#mpds.get(url.href);
    if (known !== undefined) return known;
    const { text, finalUrl } = await this.#fetch(url, headers);
    const mpd = openMpd(text, finalUrl);
    this.#mpds.set(url.href, mpd).set(finalUrl.href, mpd);
    return mpd;
  }

  async #fetch(url: URL, headers: HeadersFor): Promise<{ text: string; finalUrl: URL }> {
    const response = await this.#get(url, headers, maxManifestBytes);
    return { text: await readText(response.body), finalUrl: response.url };
  }

  #get(url: URL, headers: HeadersFor, maxBytes: number) {
    return this.#client.get(url, { signal: this.#signal, headers, maxBytes });
  }
}
