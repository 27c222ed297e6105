import { bestFormats, hasVideo } from "../../model/format-ranking.ts";
import { withApproximateSize } from "../../model/format-sizes.ts";
import type { ManifestFormat } from "../../manifests/manifest.ts";
import type { Format, PageInfo } from "../../model/page-info.ts";
import { extensionOfMediaType } from "../../parsers/media-type.ts";
import type { FileInfo } from "./content.ts";
import type { LinkFetcher } from "./link-fetcher.ts";
import type { ResolveContext } from "../resolver.ts";

type Page = Pick<PageInfo, "formats" | "duration" | "live_status" | "sources">;

/** Files whose size is asked for. */
const maxFiles = 3;

/**
 * Adds what can be learned of the sizes of a page's formats with one round trip.
 *
 * - The first bytes of up to three files are requested, videos without a height first, then files without a `filesize`: they
 *   tell the size, and what else the page leaves open of these formats, as far as they have the file's index.
 * - If neither the page nor a multivariant HLS playlist states the duration, the first playlist that it lists gives it,
 *   or that it is live.
 * - All other sizes are bit rate × duration.
 *
 * For a download, which learns sizes anyway, only videos without a height are requested, then those without a codec if it needs
 * codecs; both only if there are several formats to choose from, or if it needs heights.
 *
 * What the page states stays. A file that cannot be fetched stays listed, too: another request may succeed.
 */
export async function addSizes<P extends Page>(
  page: P,
  pageUrl: URL,
  linkFetcher: LinkFetcher,
  {
    forDownload = false,
    needsHeights = false,
    needsCodecs = false,
  }: Pick<ResolveContext, "forDownload" | "needsHeights" | "needsCodecs">,
): Promise<P> {
  const from = ({ http_headers }: Format) => URL.parse(http_headers?.["Referer"] ?? "") ?? pageUrl;
  const ofUnknownHeight = page.formats.filter(isOfUnknownHeight);
  const ofUnknownSize = page.formats.filter(isOfUnknownSize);
  const ofUnknownCodec = page.formats.filter(isOfUnknownCodec);
  const hasChoice = page.formats.length > 1;
  const unknown = [
    ...(!forDownload || needsHeights || hasChoice ? ofUnknownHeight : []),
    ...(needsCodecs && hasChoice ? ofUnknownCodec : []),
    ...(forDownload ? [] : ofUnknownSize),
  ];
  const files = [...new Set(unknown)].slice(0, maxFiles);
  const isDurationNeeded = page.duration === null && !forDownload;
  const variant = isDurationNeeded ? page.formats.find(isHlsVariant) : undefined;
  const [playlist, ...infos] = await Promise.all([
    variant && linkFetcher.fetchPlaylist(new URL(variant.url), from(variant)),
    ...files.map((file) => linkFetcher.fetchFileInfo(new URL(file.url), from(file))),
  ]);
  const infoOf = new Map(files.map((file, index) => [file, infos[index] ?? null]));
  const fileDuration = infos.find((each) => each?.duration)?.duration ?? null;
  const duration = page.duration ?? playlist?.duration ?? fileDuration;
  const live_status = page.live_status ?? playlist?.live_status ?? null;
  const isLive = live_status === "is_live" || live_status === "is_upcoming";
  const formats = page.formats.map((listed: ManifestFormat) => {
    const { averageTbr, ...format } = addInfo(listed, infoOf.get(listed) ?? null);
    return withApproximateSize(format, isLive ? null : duration, averageTbr);
  });
  const added = {
    ...(duration !== page.duration && { duration: playlist?.duration ? "manifest" : "media" }),
    ...(live_status !== page.live_status && { live_status: "manifest" }),
  } as const;
  const sources = { ...page.sources, ...added };
  return { ...page, formats: bestFormats(formats), duration, live_status, sources };
}

function isOfUnknownSize({ protocol, filesize }: Format): boolean {
  return protocol === "https" && filesize === null;
}

/** Whether it is a file whose video may have any height. */
function isOfUnknownHeight(format: Format): boolean {
  return format.protocol === "https" && hasVideo(format) && format.height === null;
}

function isOfUnknownCodec({ protocol, vcodec }: Format): boolean {
  return protocol === "https" && vcodec === null;
}

/** Whether a multivariant HLS playlist lists it. */
function isHlsVariant({ protocol, url, manifest_url }: Format): boolean {
  return protocol === "m3u8" && url !== manifest_url;
}

function addInfo(format: ManifestFormat, info: FileInfo | null): ManifestFormat {
  if (info === null) return format;
  const mime_type = format.mime_type ?? info.mime_type;
  return {
    ...format,
    filesize: format.filesize ?? info.filesize,
    mime_type,
    ext: format.ext ?? extensionOfMediaType(mime_type),
    // A width alone may be that of the player.
    ...(format.height === null && info.height !== null && { width: info.width, height: info.height }),
    fps: format.fps ?? info.fps,
    vcodec: format.vcodec ?? info.vcodec,
    acodec: format.acodec ?? info.acodec,
  };
}
