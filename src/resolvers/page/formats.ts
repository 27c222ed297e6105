import { splitCodecs } from "../../manifests/attributes.ts";
import type { DownloadFormat, Format, Vocabulary } from "../../model/page-info.ts";
import { refererOf } from "../../net/http/site-headers.ts";
import { type MediaType, mediaTypeOf } from "../../parsers/media-type.ts";
import { isSamePage } from "../../parsers/url.ts";
import type { Resource } from "./metadata.ts";

interface SourcedResource extends Resource {
  vocabulary: Vocabulary;
}

/** A resource that is a medium itself: a file or a manifest. */
export interface Medium extends SourcedResource {
  kind: "video" | "audio";
  protocol: "https" | "m3u8" | "dash";
  ext: string | null;
  mime_type: string | null;
}

const maxMedia = 50;

/**
 * Returns the files and manifests among `resources`, each URL once, at most 50. A later resource
 * of the same URL adds what the first one does not state.
 */
export function findMedia(resources: readonly SourcedResource[]): Medium[] {
  const media = new Map<string, Medium>();
  for (const resource of resources) {
    const medium = toMedium(resource);
    const key = resource.url.href.replace(/^http:/, "https:");
    if (medium === null || media.size === maxMedia) continue;
    const stated = Object.entries(media.get(key) ?? {}).filter(([, value]) => value !== null);
    media.set(key, { ...medium, ...Object.fromEntries(stated) });
  }
  return [...media.values()];
}

function toMedium(resource: SourcedResource): Medium | null {
  const { kind, ext, mime_type } = classify(resource);
  // A player's URL may end in .mp4 or .mpeg: what is there is a page.
  if (resource.role === "player" && kind !== "hls" && kind !== "dash") return null;
  if (kind === "video" || kind === "audio") return { ...resource, kind, protocol: "https", ext, mime_type };
  if (kind === "hls") return { ...resource, kind: "video", protocol: "m3u8", ext, mime_type };
  if (kind === "dash") return { ...resource, kind: "video", protocol: "dash", ext, mime_type };
  if (kind !== "unknown" || resource.fallback === null) return null;
  return { ...resource, kind: resource.fallback, protocol: "https", ext, mime_type };
}

/**
 * Returns the player to embed: the first one, Flash only if there is no other; null if there is none. A
 * URL of the page itself (`pageUrls`) is not a player: pages state it when they have none.
 */
export function findEmbed(
  resources: readonly SourcedResource[],
  pageUrls: readonly (URL | null)[],
): SourcedResource | null {
  const players = resources.filter(
    ({ role, url }) => role !== "media" && !pageUrls.some((pageUrl) => pageUrl !== null && isSamePage(pageUrl, url)),
  );
  const findKind = (...kinds: MediaType["kind"][]) =>
    players.find((each) => toMedium(each) === null && kinds.includes(classify(each).kind));
  return findKind("page", "unknown", "video", "audio") ?? findKind("flash") ?? null;
}

/**
 * Returns the media type that is stated, else that of the URL. Pages state `video/mp4` for manifests and
 * Flash too; in these cases the URL's takes precedence.
 */
function classify({ type, url }: SourcedResource): MediaType {
  const byUrl = mediaTypeOf(null, url);
  const byType = mediaTypeOf(type, url);
  const isMislabelled = byType.kind === "video" && ["hls", "dash", "flash"].includes(byUrl.kind);
  return byType.kind === "unknown" || isMislabelled ? byUrl : byType;
}

/**
 * Creates the format of a medium from what the page states. `format_id` is made of these values
 * (`https-720p-mp4`, `m3u8`), so that a medium has the same id in each call; it is not unique yet.
 */
export function createFormat(medium: Medium): Format {
  const { protocol, ext, height, mime_type, width, tbr, filesize, language } = medium;
  const codecs = splitCodecs(/;\s*codecs\s*=\s*"?([^";]{1,500})/i.exec(medium.type ?? "")?.[1]);
  const url = medium.url.href;
  const parts = [protocol, height === null ? null : `${height}p`, protocol === "https" ? ext : null];
  return {
    format_id: parts.filter((part) => part !== null).join("-"),
    url,
    manifest_url: protocol === "https" ? null : url,
    protocol,
    ext: protocol === "https" ? ext : null,
    mime_type,
    width,
    height,
    fps: null,
    vcodec: medium.kind === "audio" ? "none" : codecs.vcodec,
    acodec: codecs.acodec,
    tbr,
    filesize,
    filesize_approx: null,
    language,
    has_drm: false,
  };
}

/** Of a longer URL only the origin is stated: thousands of formats may repeat it. */
const maxRefererLength = 500;

/** Returns the formats with the `Referer` that a browser sends with them from the page `page`. */
export function addReferer(formats: readonly Format[], page: URL): Format[] {
  const stated = page.href.length > maxRefererLength ? new URL(page.origin) : page;
  return formats.map((format) => {
    const referer = refererOf(stated, new URL(format.url));
    return referer === undefined ? format : { ...format, http_headers: { Referer: referer } };
  });
}

/** Returns the formats with these cookies, as `parseCookies` reads them; `""`: none. */
export function addCookies(formats: readonly Format[], cookies: string): DownloadFormat[] {
  return formats.map((format) => (cookies === "" ? format : { ...format, cookies }));
}
