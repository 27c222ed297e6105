import { refererOf } from "../../net/http/site-headers.ts";
import type { DownloadFormat, Format } from "../../model/page-info.ts";
import { splitCodecs } from "../../manifests/codecs.ts";
import type { Medium } from "./resources.ts";

/**
 * Creates the format of a medium from what the page states. `format_id` is made of these values
 * (`https-720p-mp4`, `m3u8`), so that a medium has the same id in each call; it is not unique yet.
 */
export function createFormat(medium: Medium): Format {
  const { protocol, ext, height, mime_type, width, tbr, filesize, language } = medium;
  const codecs = splitCodecs(/;\s*codecs\s*=\s*"?([^";]{1,500})/i.exec(medium.type ?? "")?.[1]);
  const url = medium.url.href;
  const parts = [
    protocol,
    height === null ? null : `${height}p`,
    protocol === "https" ? ext : null,
  ];
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
