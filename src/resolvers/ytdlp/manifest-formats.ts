import { orServiceError, startDeadline } from "../../async/deadline.ts";
import { ServiceError } from "../../model/errors.ts";
import { maxLinkedBytes } from "../../manifests/dash/links.ts";
import { createFormatIds, joinSubtitles, maxManifestLength } from "../../manifests/manifest.ts";
import type { InfoWarning, PageInfo } from "../../model/page-info.ts";
import type { HttpClient } from "../../net/client.ts";
import { urlForMessage } from "../../net/http-url.ts";
import { createSiteHeaders } from "../../net/http/site-headers.ts";
import type { RequestBodies } from "../page/reader/bodies.ts";
import { type Reader, readManifest } from "../page/reader/reader.ts";
import type { ListedFormat } from "./formats.ts";

interface ManifestFormatsDeps {
  client: HttpClient;
  reader: Reader;
  bodies: RequestBodies;
  /** URL of the page, for `Referer`. */
  pageUrl: string;
  signal: AbortSignal;
  owner?: string | undefined;
  /** Whether yt-dlp lists subtitles of HLS, without what they are for. */
  hasHlsSubtitles: boolean;
  /** When the formats must be listed, on the clock of `performance.now()`. */
  deadlineMs: number;
}

const maxManifests = 3;
const maxTimeoutMs = 5_000;
/** Share of the time before the deadline that the manifests may take. */
const manifestShare = 0.9;

type Listing = Pick<PageInfo, "subtitles"> & { formats: ListedFormat[] };

/** Formats that yt-dlp lists, and whose manifest cannot be read. */
interface UnreadManifest {
  error: ServiceError;
  warning: InfoWarning;
}

/**
 * Replaces the formats of each DASH manifest with those that our own reader finds in it: the engine finds a format in a manifest by
 * the reader's id. Leaves out the formats of a manifest that cannot be read, and of the fourth one and those after it, and says so in `unread`. Adds what up to three multivariant
 * HLS playlists say of their audio, unless yt-dlp knows which is the original, or there is only one. Lists the subtitles of
 * DASH, and those of HLS if yt-dlp lists them too: some extractors leave them out as they have files of the same. Makes each `format_id` unique.
 *
 * Rejects only with `signal.reason`.
 */
export async function listManifestFormats(
  formats: readonly ListedFormat[],
  deps: ManifestFormatsDeps,
): Promise<Listing & { unread: UnreadManifest[] }> {
  const isOfDash = ({ protocol, manifest_url }: ListedFormat) => protocol === "dash" && manifest_url !== null;
  const others = formats.filter((format) => !isOfDash(format));
  const mpds = [...groupsOf(formats.filter(isOfDash))];
  const dash = mpds.slice(0, maxManifests);
  const hls = [
    ...groupsOf(others.filter(({ protocol, url, manifest_url }) => protocol === "m3u8" && url !== manifest_url)),
  ]
    .filter(([, group]) => deps.hasHlsSubtitles || isAudioUnclear(group))
    .slice(0, maxManifests);
  const [dashResults, hlsResults] = await Promise.all([
    Promise.all(dash.map(([url, group]) => readFormatsAt("dash", url, group, deps))),
    Promise.all(hls.map(([url, group]) => readFormatsAt("m3u8", url, group, deps))),
  ]);
  const [dashListings, hlsListings] = [dashResults, hlsResults].map((all) => all.filter(isListing)) as [
    Listing[],
    Listing[],
  ];
  const unread = mpds.flatMap(([url, group], index) => {
    const result = dashResults[index] ?? tooManyError(url);
    return isListing(result) ? [] : [{ error: result, warning: warnOf(group, result) }];
  });
  const stated = new Map(
    hlsListings.flatMap(({ formats: listed }) => listed.map((format) => [format.url, format] as const)),
  );
  const isKnown = new Set(hls.flatMap(([, group]) => (isOriginalStated(group) ? group : [])));
  const uniqueId = createFormatIds();
  const all = [
    ...others.map((format) => (isKnown.has(format) ? format : withAudioOf(format, stated.get(format.url)))),
    ...dashListings.flatMap((listing) => listing.formats),
  ];
  return {
    formats: all.map((format) => ({ ...format, format_id: uniqueId(format.format_id) })),
    subtitles: joinSubtitles(
      [...(deps.hasHlsSubtitles ? hlsListings : []), ...dashListings].map(({ subtitles }) => subtitles),
    ),
    unread,
  };
}

function isListing(result: Listing | ServiceError): result is Listing {
  return !(result instanceof ServiceError);
}

function tooManyError(url: string): ServiceError {
  const message = `${urlForMessage(new URL(url))} is not read, as at most ${maxManifests} MPDs of a page are`;
  return new ServiceError("upstream_invalid", message);
}

/** `message` names the manifest. */
function warnOf(formats: readonly ListedFormat[], { message }: ServiceError): InfoWarning {
  const heights = formats.map(({ height }) => height ?? 0);
  const height = heights.reduce((tallest, each) => Math.max(tallest, each), 0) || null;
  const upTo = height === null ? "" : `, up to ${height} pixels high,`;
  const lacks = formats.length === 1 ? `1 format${upTo} is` : `${formats.length} formats${upTo} are`;
  return { code: "formats_missing", message: `${lacks} not listed: ${message}`, height };
}

function groupsOf(formats: readonly ListedFormat[]): Map<string, ListedFormat[]> {
  return Map.groupBy(formats, ({ manifest_url }) => manifest_url ?? "");
}

const isOriginalStated = (formats: readonly ListedFormat[]) =>
  formats.some(({ languagePreference }) => languagePreference > 0);

/** Whether formats of one playlist have several versions of audio, of which yt-dlp does not know the original. */
function isAudioUnclear(formats: readonly ListedFormat[]): boolean {
  const audio = formats.filter(({ vcodec }) => vcodec === "none");
  const isIncluded = formats.some(({ vcodec, acodec }) => vcodec !== "none" && acodec !== "none");
  const versions = new Set(audio.map(({ language, name }) => JSON.stringify([language, name])));
  return audio.length > 0 && (versions.size > 1 || isIncluded) && !isOriginalStated(formats);
}

/** Returns a format of HLS with what its playlist says of its audio. */
function withAudioOf(format: ListedFormat, stated: ListedFormat | undefined): ListedFormat {
  if (stated === undefined) return format;
  const { language, name, roles, audio_role, audio_group, preference } = stated;
  // What roles tell apart needs no names.
  const { name: _, ...own } = format;
  return {
    ...own,
    language: format.language ?? language,
    ...(name !== undefined && { name }),
    ...(roles !== undefined && { roles }),
    ...(audio_role !== undefined && { audio_role }),
    ...(audio_group !== undefined && { audio_group }),
    ...(preference !== undefined && { preference }),
  };
}

/** Returns what the manifest at `url` lists, or why it cannot be fetched or read. */
async function readFormatsAt(
  kind: "dash" | "m3u8",
  url: string,
  [first]: readonly ListedFormat[],
  { client, reader, bodies, pageUrl, signal, owner, deadlineMs }: ManifestFormatsDeps,
): Promise<Listing | ServiceError> {
  const { http_headers, cookies } = first ?? {};
  const demands = {
    ...(http_headers !== undefined && { http_headers }),
    ...(cookies !== undefined && { cookies }),
  };
  const shareMs = Math.max(0, Math.floor(manifestShare * (deadlineMs - performance.now())));
  const timeoutMs = Math.min(maxTimeoutMs, shareMs);
  using deadline = startDeadline(signal, timeoutMs, `GET ${urlForMessage(new URL(url))}`);
  return await orServiceError(signal, async () => {
    const headers = createSiteHeaders({ url, ...demands }, pageUrl);
    const fetchBody = async (from: URL, maxBytes = maxLinkedBytes) => {
      const response = await client.get(from, { signal: deadline.signal, owner, maxBytes, headers });
      return { body: await bodies.read(response.body, deadline.signal), url: response.url };
    };
    const manifest = await readManifest(kind, await fetchBody(new URL(url), maxManifestLength), {
      reader,
      owner,
      signal: deadline.signal,
      fetchLinked: (link) => fetchBody(link),
    });
    const formats = manifest.formats.map((format) => ({ ...format, ...demands, languagePreference: -1, isDub: false }));
    return { formats, subtitles: manifest.subtitles };
  });
}
