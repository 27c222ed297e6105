import { ServiceError } from "../../model/errors.ts";
import { maxLinkedBytes } from "../../manifests/dash/links.ts";
import { createFormatIds } from "../../manifests/format-ids.ts";
import { joinSubtitles } from "../../manifests/subtitles.ts";
import type { PageInfo } from "../../model/page-info.ts";
import { readManifestText } from "../../manifests/text.ts";
import type { HttpClient } from "../../net/client.ts";
import { createSiteHeaders } from "../../net/http/site-headers.ts";
import { readMpd } from "../page/reader/read-mpd.ts";
import type { Reader } from "../page/reader/reader.ts";
import type { TimeSlices } from "../../parsers/steps.ts";
import type { ListedFormat } from "./formats.ts";

export interface DashFormatsDeps {
  client: HttpClient;
  reader: Reader;
  slices: TimeSlices;
  /** URL of the page, for `Referer`. */
  pageUrl: string;
  signal: AbortSignal;
  owner?: string | undefined;
  /** When the formats must be listed, on the clock of `performance.now()`. */
  deadlineMs: number;
}

const maxManifests = 3;
const maxManifestBytes = 4 * 1024 * 1024;
const maxTimeoutMs = 5_000;
/** Share of the time before the deadline that the manifests may take. */
const manifestShare = 0.9;

/** What manifests list. */
type Listing = Pick<PageInfo, "subtitles"> & { formats: ListedFormat[] };

/**
 * Replaces the formats of each DASH manifest with those that our own reader finds in it, and lists its subtitles: the engine finds a
 * format in a manifest by the reader's id. Leaves out the formats of a manifest that cannot be read, and of the
 * fourth one and on. Makes each `format_id` unique.
 *
 * Rejects only with `signal.reason`.
 */
export async function listDashFormats(formats: readonly ListedFormat[], deps: DashFormatsDeps): Promise<Listing> {
  const byManifest = Map.groupBy(formats, (format) => (format.protocol === "dash" ? format.manifest_url : null));
  const manifests = [...byManifest].filter((group): group is [string, ListedFormat[]] => group[0] !== null);
  const listings = await Promise.all(
    manifests.slice(0, maxManifests).map(([url, group]) => readFormatsAt(url, group, deps)),
  );
  const uniqueId = createFormatIds();
  const all = [...(byManifest.get(null) ?? []), ...listings.flatMap((listing) => listing.formats)];
  return {
    formats: all.map((format) => ({ ...format, format_id: uniqueId(format.format_id) })),
    subtitles: joinSubtitles(listings.map(({ subtitles }) => subtitles)),
  };
}

/** Returns nothing if the manifest at `url` cannot be fetched or read. */
async function readFormatsAt(
  url: string,
  [first]: readonly ListedFormat[],
  { client, reader, slices, pageUrl, signal, owner, deadlineMs }: DashFormatsDeps,
): Promise<Listing> {
  const { http_headers, cookies } = first ?? {};
  const demands = {
    ...(http_headers !== undefined && { http_headers }),
    ...(cookies !== undefined && { cookies }),
  };
  const shareMs = Math.max(0, Math.floor(manifestShare * (deadlineMs - performance.now())));
  const timeoutMs = Math.min(maxTimeoutMs, shareMs);
  const requestSignal = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const headers = createSiteHeaders({ url, ...demands }, pageUrl);
    const fetchText = async (from: URL, maxBytes = maxLinkedBytes) => {
      const response = await client.get(from, { signal: requestSignal, owner, maxBytes, headers });
      return { text: await readManifestText(response.body), url: response.url };
    };
    const manifest = await readMpd(await fetchText(new URL(url), maxManifestBytes), {
      reader,
      owner,
      signal: requestSignal,
      fetchText: (link) => fetchText(link),
      run: (steps) => slices.run(steps, requestSignal),
    });
    const { subtitles } = manifest;
    return {
      formats: manifest.formats.map((format) => ({ ...format, ...demands, languagePreference: -1, isDub: false })),
      subtitles,
    };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceError || requestSignal.aborted) return { formats: [], subtitles: {} };
    throw error;
  }
}
