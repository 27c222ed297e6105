import { parsePixels } from "../../../parsers/count.ts";
import { parseLanguage } from "../../../parsers/language.ts";
import { mediaTypeOf } from "../../../parsers/media-type.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { createResource, type Resource } from "../metadata.ts";
import { type Data, namesFile } from "./data.ts";
import { isManifestName } from "./names.ts";

/** What stands beside the addresses in an object. */
export interface Beside {
  data: Data;
  /** Media type, or a word such as `hls`. */
  type: string | null;
  /** A media type stands there, of whatever name the address is. */
  isTyped: boolean;
  label: string | null;
  width: number | null;
  height: number | null;
  tbr: number | null;
  filesize: number | null;
  language: string | null;
}

const hls = "application/vnd.apple.mpegurl";
const dash = "application/dash+xml";
const mediaWord =
  /^(?:(?:video|audio)\/\w|application\/(?:x-mpegurl|vnd\.apple|dash)|(?:hls|dash|m3u8|mpd)$)/i;

/** Reads it once for all addresses in `data`. */
export function readBeside(data: Data): Beside {
  const text = (name: RegExp) => firstText(data, name);
  const types = [
    text(/^(?:(?:mime|content|media|video)_?)?type$/i),
    text(/^(?:mime|format|delivery|protocol)$/i),
  ].filter((type) => type !== null);
  const type = types.find((each) => mediaWord.test(each)) ?? null;
  return {
    data,
    type,
    isTyped: type !== null,
    label: text(/^(?:label|quality|resolution|name|definition|res)$/i),
    width: parsePixels(text(/^(?:frame|video)?_?width$/i)),
    height: parsePixels(text(/^(?:frame|video)?_?height$|^verticalResolution$/i)),
    tbr: parseBitRate(
      text(/^(?:(?:total|video|avg|average)_?)?bit_?rate$|^(?:bandwidth|encoding_?rate|tbr)$/i),
    ),
    filesize: parseSize(text(/^(?:file_?)?size(?:_?in_?bytes)?$/i)),
    language: parseLanguage(text(/^(?:lang|language|srclang|audio_?lang(?:uage)?)$/i)),
  };
}

/** Returns the medium whose address a field is, by name and form; null if it is none. */
export function resourceOf(key: string, value: string, beside: Beside, base: URL): Resource | null {
  const { data, width, tbr, filesize, language } = beside;
  const isNamed = namesFile(value) || beside.isTyped || isManifestName(key, data);
  if (!isNamed) return null;
  const url = tryParseUrl(value.replaceAll("&amp;", "&"), base);
  if (url === null) return null;
  const isMedium = ["video", "audio", "hls", "dash"].includes(mediaTypeOf(null, url).kind);
  // The path of `1.mp4.srt` or `1.mp4.jpg` ends in something else than a medium.
  if (!isMedium && /\.[a-z][a-z\d]{1,4}$/i.test(url.pathname)) return null;
  const type = typeOf(key, beside);
  if (!isMedium && type === null) return null;
  const isUseful = !isMedium || type?.includes("codecs") === true;
  return createResource(url, "media", {
    type: isUseful ? type : null,
    fallback: type?.toLowerCase().startsWith("audio/") === true ? "audio" : "video",
    width,
    height: beside.height ?? labelledHeight(key) ?? labelledHeight(beside.label),
    tbr,
    filesize,
    language,
  });
}

/** Returns the first text of the fields whose names match. */
export function firstText({ fields }: Data, name: RegExp): string | null {
  for (const { key, value } of fields) {
    if (typeof value === "string" && value !== "" && name.test(key)) return value;
  }
  return null;
}

function typeOf(key: string, { type, data }: Beside): string | null {
  if (type?.includes("/") === true) return type;
  const name = isManifestName(key, data) ? `${key} ${data.name}` : (type ?? "");
  if (/hls|m3u8/i.test(name)) return hls;
  return /dash|mpd/i.test(name) ? dash : null;
}

/** Reads `720`, `720p`, `HD 720p`, `1080p60` and `1280x720`. */
function labelledHeight(label: string | null): number | null {
  const found = /(?:^|\D)(?:\d{3,4}x)?(\d{3,4})(?:p\d{0,2}\b|\s|$)/i.exec(
    label?.slice(0, 60) ?? "",
  );
  const height = Number(found?.[1] ?? 0);
  return height >= 100 && height <= 4320 ? height : null;
}

/** Returns kbit/s; rates over 30,000 are bit/s. */
function parseBitRate(text: string | null): number | null {
  const rate = Number(/^\d{2,9}(?:\.\d{1,3})?$/.exec(text ?? "")?.[0] ?? 0);
  if (rate <= 0) return null;
  return rate > 30_000 ? Math.round(rate) / 1_000 : rate;
}

function parseSize(text: string | null): number | null {
  const size = Number(/^\d{4,14}$/.exec(text ?? "")?.[0] ?? 0);
  return size > 0 ? size : null;
}
