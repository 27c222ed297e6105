import { checkLength, invalidManifestError } from "./manifest.ts";

/**
 * @throws ServiceError `upstream_invalid` unless `text` begins with #EXTM3U (white space and a byte
 * order mark may stand before it) and has at most 4 Mi characters.
 */
export function checkPlaylist(text: string, url: URL): void {
  checkLength(text, url);
  const start = text.search(/\S/);
  if (start === -1 || text.slice(start, start + 7).toUpperCase() !== "#EXTM3U") {
    throw invalidManifestError(url, "an HLS playlist must begin with #EXTM3U (RFC 8216 §4.3.1.1)");
  }
}

const multivariantTag = /^[ \t]*#EXT-X-(?:STREAM-INF|I-FRAME-STREAM-INF|MEDIA|SESSION-KEY):/im;

/** Whether it lists other playlists (RFC 8216 §4.3.4), not segments. */
export function isMultivariant(text: string): boolean {
  return multivariantTag.test(text);
}
