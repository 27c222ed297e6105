/** The end of a usual media file's name, with what may follow it. */
const fileNames = /\.(?:m(?:3u8|p[d34]|4[av]|ov)|webm|flv|M(?:3U8|P4))(?:[?"'`&\\#%;>]|\/["'?])/;

/**
 * What tells that a text may name a medium: the end of a file's name, with what may follow it; a manifest's media
 * type; the words for manifests, as a type (`format: "hls"`) or of an address (`hlsUrl: "/1"`, `data-hls-url="/1"`);
 * the words for files, as a type (`type: "video/mp4"`).
 */
export const mediaNames =
  /\.(?:m(?:3u8|p[d34]|4[av]|ov|kv)|webm|flv|og[gva]|wav|flac|aac|opus)(?:[?"'`&\\#%;>\s]|\/["'?]|$)|(?:mpegurl|dash\+xml)[?"'`&\\#%;>]|(?:hls|dash)(?:(?:[-_]?(?:manifest|playlist|stream))?(?:[-_]?(?:url|src))?(?:\\{0,3}["']|&quot;)?\s?[:=]\s?(?:\\{0,3}["']|&quot;)(?:https?:|\\{0,3}\/)|(?<=[:=]\s?(?:\\{0,3}["']|&quot;)\w{3,4})(?:\\|["'&]))|(?:video\\{0,3}\/|type(?:\\{0,3}["']|&quot;)?\s?[:=]\s?(?:\\{0,3}["']|&quot;))(?:mp4|webm)(?:\\|["'&])/i;

/** More characters than a match of `mediaNames` has. */
export const maxNameLength = 50;
/** In a longer text only usual files are searched for, which takes half the time; UTF-16 code units. */
const maxSearchLength = 16 * 1024;

/** Whether a part of a page may name a medium. What has neither a dot nor a slash has no address. */
export function mayNameMedium(text: string): boolean {
  if (!text.includes(".") && !text.includes("/")) return false;
  return (text.length > maxSearchLength ? fileNames : mediaNames).test(text);
}
