import { parsePixels } from "../../../parsers/count.ts";
import { parseLanguage } from "../../../parsers/language.ts";
import { isMediaKind, mediaTypeOf } from "../../../parsers/media-type.ts";
import { parseQuality, qualityInPath } from "../../../parsers/quality.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { createResource, type Resource } from "../metadata.ts";
import { type Data, namesFile } from "./data.ts";
import { isManifestName } from "./names.ts";

/** What an object states beside its URLs. */
export interface Beside {
  data: Data;
  /** Media type, or a word such as `hls`. */
  type: string | null;
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
  /^(?:(?:video|audio)\/\w|application\/(?:(?:x-)?mpegurl|vnd\.apple|dash)|(?:hls|dash|m3u8|mpd|mp[34]|webm)$)/i;

/** Reads what `data` states beside its URLs. */
export function readBeside(data: Data): Beside {
  const text = (name: RegExp) => firstText(data, name);
  const types = [
    text(/^(?:(?:mime|content|media|video)_?)?type$/i),
    text(/^(?:mime|format|delivery|protocol)$/i),
  ].filter((type) => type !== null);
  const size = text(/^(?:file_?)?size(?:_?in_?bytes)?$/i);
  const type = types.find((each) => mediaWord.test(each)) ?? null;
  return {
    data,
    type,
    label: text(/^(?:label|quality|resolution|name|definition|res)$/i),
    width: parsePixels(text(/^(?:frame|video)?_?width$/i)),
    height:
      parsePixels(text(/^(?:frame|video)?_?height$|^verticalResolution$/i)) ?? parseQuality(size),
    tbr: parseBitRate(
      text(/^(?:(?:total|video|avg|average)_?)?bit_?rate$|^(?:bandwidth|encoding_?rate|tbr)$/i),
    ),
    filesize: parseSize(size),
    language: parseLanguage(text(/^(?:lang|language|srclang|audio_?lang(?:uage)?)$/i)),
  };
}

/** Returns the medium that a field's value is the URL of; null if it is not a medium's URL. */
export function resourceOf(key: string, value: string, beside: Beside, base: URL): Resource | null {
  const { data, width, tbr, filesize, language } = beside;
  const isNamed = namesFile(value) || beside.type !== null || isManifestName(key, data);
  if (!isNamed) return null;
  const decoded = /^https?%3A%2F%2F/i.test(value) ? percentDecoded(value) : value;
  const url = tryParseUrl(decoded.replaceAll("&amp;", "&"), base);
  if (url === null || isPicture(url)) return null;
  const isMedium = isMediaKind(mediaTypeOf(null, url).kind);
  // `1.mp4.srt` and `1.mp4.jpg` are other files.
  if (!isMedium && /\.[a-z][a-z\d]{1,4}$/i.test(url.pathname)) return null;
  const type = typeOf(key, beside);
  if (!isMedium && type === null) return null;
  const isUseful = !isMedium || type?.includes("codecs") === true;
  return createResource(url, "media", {
    type: isUseful ? type : null,
    fallback: type?.toLowerCase().startsWith("audio/") === true ? "audio" : "video",
    width,
    height: beside.height ?? heightIn([key, beside.label, data.name]) ?? qualityInPath(url),
    tbr,
    filesize,
    language,
  });
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whether the URL asks the server for a frame of the video. */
function isPicture({ search }: URL): boolean {
  return /snapshot|format=(?:jpe?g|png|webp)|[?&]frame=/i.test(search.slice(0, 1_000));
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
  if (/hls|m3u8|loadSource/i.test(name)) return hls;
  if (/dash|mpd/i.test(name)) return dash;
  if (/^mp3$/i.test(name)) return "audio/mpeg";
  return /^(?:mp4|webm)$/i.test(name) ? `video/${name}` : null;
}

function heightIn(labels: readonly (string | null)[]): number | null {
  return labels.map(parseQuality).find((height) => height !== null) ?? null;
}

/** Returns kbit/s; rates over 30,000 are bit/s. */
function parseBitRate(text: string | null): number | null {
  const rate = Number(/^\d{2,9}(?:\.\d{1,3})?$/.exec(text ?? "")?.[0] ?? 0);
  if (rate <= 0) return null;
  return rate > 30_000 ? Math.round(rate) / 1_000 : rate;
}

/** Returns bytes; less than 5,000 may be a height. */
function parseSize(text: string | null): number | null {
  const size = Number(/^\d{4,14}$/.exec(text ?? "")?.[0] ?? 0);
  return size >= 5_000 ? size : null;
}
