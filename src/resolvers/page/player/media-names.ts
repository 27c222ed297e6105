/** How the extensions of usual media files start: to search for each of them is faster than to match a pattern. */
const extensionStarts = [".m", ".M", ".webm", ".flv"];
/** The extension of a usual media file, with what may follow it. */
const usualExtension =
  /\.(?:m(?:3u8|p(?:[d34]|ga)|4[av]|ov)|webm|flv|M(?:3U8|P4))(?:[?"'`&\\#%;>]|\/["'?])/y;

/**
 * What tells that a text may name a medium: the end of a file's name, with what may follow it; a manifest's media
 * type; the words for manifests, as a type (`format: "hls"`) or of an address (`hlsUrl: "/1"`, `data-hls-url="/1"`);
 * the words for files, as a type (`type: "video/mp4"`, of which `o/mp4"` is searched: that halves the time) or a format;
 * hls.js' `loadSource("/1")`.
 */
export const mediaNames =
  /\.(?:m(?:3u8|p(?:[d34]|ga)|4[av]|ov|kv)|webm|flv|og[gva]|wav|flac|aac|opus)(?:[?"'`&\\#%;>\s]|\/["'?]|$)|(?:mpegurl|dash\+xml)[?"'`&\\#%;>]|(?:hls|dash)(?:(?:[-_]?(?:manifest|playlist|stream))?(?:[-_]?(?:url|src))?(?:\\{0,3}["']|&quot;)?\s?[:=]\s?(?:\\{0,3}["']|&quot;)(?:https?:|\\{0,3}\/)|(?<=[:=]\s?(?:\\{0,3}["']|&quot;)\w{3,4})(?:\\|["'&]))|o\\{0,3}\/(?:mp[34]|webm|mpeg|aac|ogg)[\\;"'&]|(?:type|format)(?:\\{0,3}["']|&quot;)?\s?[:=]\s?(?:\\{0,3}["']|&quot;)(?:mp[34]|webm|mpeg|aac|ogg)[\\;"'&]|loadSource\(["']/i;

/** More characters than a match of `mediaNames` has. */
export const maxNameLength = 50;
/** Characters, as encoded or decoded. A longer text is searched only for usual files that are stated, which takes half the time. */
const maxSearchLength = 16 * 1024;
/** After more files that are not stated the search ends, and the text is read anyway. */
const maxUnstated = 100;
/** How far around a name its context is looked at, UTF-16 code units. */
const reach = 300;
const address = /[:=]\s?(?:\\{0,3}["'`]|&quot;)(?:https?:)?\\{0,3}\/[^*]/;

/** Whether a part of a page may name a medium. What has neither a dot nor a slash has no address. */
export function mayNameMedium(text: string): boolean {
  if (!text.includes(".") && !text.includes("/")) return false;
  if (text.length <= maxSearchLength) return mediaNames.test(text);
  let unstated = 0;
  for (const start of extensionStarts) {
    for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1)) {
      usualExtension.lastIndex = at;
      if (!usualExtension.test(text)) continue;
      if (isStated(text, at) || ++unstated > maxUnstated) return true;
    }
  }
  return false;
}

/**
 * Whether the name at `at` is stated: its text is neither added to others nor compared with others. Near
 * anything but a file's extension and a call of `loadSource` must be an address: programs know types too, without the
 * media.
 */
export function isStated(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - reach), at);
  if (/(?:[+!=]=|\+)\s{0,9}["'`][^"'`]*$/.test(before)) return false;
  if (/["'`]\s?[!=]=/.test(text.slice(at + 1, at + 12))) return false;
  const isFileOrCall = /[.l]/.test(text[at] ?? "");
  return isFileOrCall || address.test(before + text.slice(at, at + reach));
}
