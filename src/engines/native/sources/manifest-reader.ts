import { buffer } from "node:stream/consumers";
import { type OpenMpd, openMpd } from "../../../manifests/dash/dash.ts";
import { maxLinkedBytes, resolveLinks } from "../../../manifests/dash/links.ts";
import { findFormat } from "../../../manifests/manifest.ts";
import { ReadPlaylists, withoutDirectives } from "../../../manifests/hls/delta.ts";
import { readHls, findRedundant } from "../../../manifests/hls/hls.ts";
import { importsVariables, isMultivariant, readVariables, type Variables } from "../../../manifests/hls/lines.ts";
import { readHlsSegments } from "../../../manifests/hls/segments.ts";
import type { SegmentList } from "../../../manifests/segments.ts";
import { decodeManifest, sniffManifest } from "../../../manifests/text.ts";
import { fetchManifest } from "../parts/fetch-manifest.ts";
import { aheadByDate, readClock } from "./site-clock.ts";
import { orServiceError } from "../../../async/deadline.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { Format } from "../../../model/page-info.ts";
import type { HeadersFor, HttpClient } from "../../../net/client.ts";

/** How a manifest is requested. */
interface Reading {
  headers: HeadersFor;
  /** Its segments were listed before: it is requested again if it is live, and once if what comes is none. */
  isReload: boolean;
}

interface OpenManifest {
  /** To choose from if the manifest was not read before; `null`: `segments` are those of the format. */
  formats: readonly Format[] | null;
  segments(): SegmentList;
}

/** Another place of a format's segments. */
export interface SegmentMirror {
  list: SegmentList;
  /** Reads the current list. */
  reload: () => Promise<SegmentList>;
}

/** Further places of the same media that are tried, for each manifest. */
const maxMirrors = 4;
/** Of a response that says what time it is. */
const maxClockBytes = 1024;
/** The site's clock is read again once ours differs by more from the time that has passed. */
const maxDriftMs = 1_000;
/** A manifest is recognized by its first bytes. */
const maxHeadBytes = 2048;

/**
 * Fetches the manifests of one download, an MPD once for all of its formats; one that is live is fetched again for each reload.
 * What a live MPD lists at first is that of one moment: all of its formats begin with the same segment.
 */
export class ManifestReader {
  readonly #client: HttpClient;
  readonly #signal: AbortSignal;
  readonly #mpds = new Map<string, ReadMpd>();
  /** When the first live MPD was requested. */
  #startMs: number | undefined;
  /** Where live MPDs want to be read again, by URL. */
  readonly #locations = new Map<string, URL>();
  /** Of multivariant playlists, by URL. */
  readonly #variables = new Map<string, Variables>();
  readonly #playlists = new ReadPlaylists();
  /** Unix milliseconds at `performance.now() === 0` by our clock when the next two were read. */
  #clockStartMs = clockStartMs();
  /** By how much the site's clock is ahead of ours, as the first live MPD says. */
  #aheadMs: Promise<number | undefined> | undefined;
  /** The same, by the first response. */
  #dateAheadMs: number | undefined;

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
    const head: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body) {
      head.push(chunk);
      length += chunk.length;
      if (length >= maxHeadBytes) break;
    }
    return sniffManifest(Buffer.concat(head).subarray(0, maxHeadBytes));
  }

  /** Opens the manifest at the URL of a format. @throws ServiceError of the client and the parsers */
  async open(format: Format, headers: HeadersFor): Promise<OpenManifest> {
    return this.#open(format, { headers, isReload: false });
  }

  /** Returns the current segments of a format whose manifest was opened before. @throws as `open` */
  async reload(format: Format, headers: HeadersFor): Promise<SegmentList> {
    return (await this.#open(format, { headers, isReload: true })).segments();
  }

  async #open(format: Format, reading: Reading): Promise<OpenManifest> {
    const { headers, isReload } = reading;
    const url = new URL(format.url);
    const isUnread = format.url === format.manifest_url;
    if (format.protocol === "m3u8") {
      const { text: sent, finalUrl } = await this.#fetch(withoutDirectives(url), reading);
      const text = this.#playlists.complete(url, sent);
      const formats = isUnread && isMultivariant(text) ? readHls(text, finalUrl).formats : null;
      const variables = importsVariables(text) ? await this.#variablesFor(format, headers) : undefined;
      const isVariant = format.manifest_url !== null && !isUnread;
      return { formats, segments: () => readHlsSegments(text, finalUrl, variables, isVariant) };
    }
    const { listing, segments, isLive, clocks, askedMs } = await this.#openMpd(url, reading);
    const isListed = findFormat(listing.formats, format.format_id) !== undefined;
    const isChoice = isUnread && !isListed && !isOfMpd(format) && listing.formats.length > 0;
    const formats = isChoice ? listing.formats : null;
    // Each MPD of a site may have other ids, and that of a live stream other Periods.
    const before = format;
    if (!isLive) return { formats, segments: () => segments(format.format_id, { before }) };
    this.#aheadMs ??= readClock(clocks, url, (source) => this.#get(source, headers, maxClockBytes));
    const aheadMs = (await this.#aheadMs) ?? this.#dateAheadMs ?? 0;
    // An MPD that takes long to arrive does not say what has ended meanwhile (ISO/IEC 23009-1 Annex A, FetchTime).
    const atMs = isReload ? askedMs : (this.#startMs ??= askedMs);
    return { formats, segments: () => segments(format.format_id, { nowMs: atMs + aheadMs, before, isReload }) };
  }

  /** Opens the manifest of subtitles that come in segments. @throws as `open` */
  openText(text: Pick<Format, "protocol" | "url" | "format_id">, headers: HeadersFor): Promise<OpenManifest> {
    const format = { ...text, manifest_url: null } as Format;
    return this.open(format, headers);
  }

  /**
   * Yields further places of a format's segments, at most 4: its redundant playlists, or the MPD's further base URLs. What
   * cannot be read is left out.
   *
   * @throws `signal.reason`
   */
  async *mirrors(format: Format, headers: HeadersFor): AsyncGenerator<SegmentMirror> {
    if (format.protocol === "dash") {
      for await (const { segments } of this.#mirrorsOfMpd(new URL(format.url), headers)) {
        const list = await this.#tryRead(async () => segments(format.format_id, { before: format }));
        if (list !== undefined) yield { list, reload: async () => list };
      }
    } else if (format.manifest_url !== null && format.manifest_url !== format.url) {
      const manifestUrl = new URL(format.manifest_url);
      const playlist = await this.#tryRead(() => this.#fetch(manifestUrl, { headers, isReload: false }));
      const urls = playlist && findRedundant(playlist.text, playlist.finalUrl, new URL(format.url));
      for (const { href } of urls?.slice(0, maxMirrors) ?? []) {
        const reload = async () => (await this.open({ ...format, url: href }, headers)).segments();
        const list = await this.#tryRead(reload);
        if (list !== undefined) yield { list, reload };
      }
    }
  }

  /** Yields further URLs of a file that an MPD lists as a format, as `mirrors` does. */
  async *mirrorsOfFile({ format_id, url, manifest_url }: Format, headers: HeadersFor): AsyncGenerator<URL> {
    if (manifest_url === null || manifest_url === url) return;
    for await (const { listing } of this.#mirrorsOfMpd(new URL(manifest_url), headers)) {
      const other = findFormat(listing.formats, format_id);
      if (other !== undefined && other.protocol === "https" && other.url !== url) yield new URL(other.url);
    }
  }

  async *#mirrorsOfMpd(url: URL, headers: HeadersFor): AsyncGenerator<ReadMpd> {
    const reading = { headers, isReload: true };
    const first = await this.#tryRead(() => this.#openMpd(url, reading));
    for (let base = 1; base < Math.min(first?.bases ?? 0, maxMirrors + 1); base += 1) {
      const mirror = await this.#tryRead(() => this.#openMpd(url, reading, base));
      if (mirror !== undefined) yield mirror;
    }
  }

  async #tryRead<T>(read: () => Promise<T>): Promise<T | undefined> {
    const result = await orServiceError(this.#signal, read);
    return result instanceof ServiceError ? undefined : result;
  }

  async #openMpd(url: URL, reading: Reading, base = 0): Promise<ReadMpd> {
    const key = `${base} ${url.href}`;
    const known = this.#mpds.get(key);
    if (known !== undefined && !(known.isLive && reading.isReload)) return known;
    const askedMs = Date.now();
    const location = this.#locations.get(url.href);
    const moved = location && (await this.#tryRead(() => this.#fetch(location, reading)));
    const { text, finalUrl } = moved ?? (await this.#fetch(url, reading));
    const linked = await resolveLinks({ text, url: finalUrl }, async (link) => {
      const response = await this.#get(link, reading.headers, maxLinkedBytes);
      return { text: decodeManifest(await buffer(response.body)), url: response.url };
    });
    const mpd = { ...openMpd(linked, finalUrl, base), askedMs };
    if (mpd.isLive && mpd.location !== null) this.#locations.set(url.href, mpd.location);
    this.#mpds.set(key, mpd);
    // Its formats have that URL. A reload is of known formats, and may be redirected elsewhere each time.
    if (!reading.isReload) this.#mpds.set(`${base} ${finalUrl.href}`, mpd);
    return mpd;
  }

  /** Returns the variables of the multivariant playlist that lists a format; it is fetched once. */
  async #variablesFor({ url, manifest_url }: Format, headers: HeadersFor): Promise<Variables | undefined> {
    if (manifest_url === null || manifest_url === url) return undefined;
    const known = this.#variables.get(manifest_url);
    if (known !== undefined) return known;
    const { text, finalUrl } = await this.#fetch(new URL(manifest_url), { headers, isReload: false });
    const variables = readVariables(text, finalUrl);
    this.#variables.set(manifest_url, variables);
    return variables;
  }

  async #fetch(url: URL, reading: Reading): Promise<{ text: string; finalUrl: URL }> {
    const { text, response } = await fetchManifest(url, this.#client, { ...reading, signal: this.#signal });
    this.#followClock();
    this.#dateAheadMs ??= aheadByDate(response.headers);
    return { text, finalUrl: response.url };
  }

  /** Has the site's clock read again if ours was set, or the machine suspended. */
  #followClock(): void {
    const startMs = clockStartMs();
    if (Math.abs(startMs - this.#clockStartMs) < maxDriftMs) return;
    this.#clockStartMs = startMs;
    this.#aheadMs = undefined;
    this.#dateAheadMs = undefined;
  }

  #get(url: URL, headers: HeadersFor, maxBytes: number) {
    return this.#client.get(url, { signal: this.#signal, headers, maxBytes });
  }
}

interface ReadMpd extends OpenMpd {
  /** When it was requested, Unix milliseconds by our clock. */
  askedMs: number;
}

/** Whether an MPD listed a format: there each has a bit rate (ISO/IEC 23009-1 §5.3.5.2). Else a page names the MPD itself. */
function isOfMpd({ vcodec, acodec, tbr }: Format): boolean {
  return tbr !== null && (vcodec !== null || acodec !== null);
}

function clockStartMs(): number {
  return Date.now() - performance.now();
}
