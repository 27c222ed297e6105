import { parsePixels, parseQuality, qualityInPath } from "../../../parsers/quantities.ts";
import { parseLanguage } from "../../../parsers/text.ts";
import { isMediaKind, mediaTypeOf } from "../../../parsers/media-type.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { names, properties } from "../lexicon/words.ts";
import { createResource, type Resource } from "../metadata.ts";
import { type Data, namesFile, readTexts } from "../scripts/data.ts";
import { decodePercents } from "../scripts/encodings.ts";
import { isManifestName } from "./names.ts";

/** What an object says of the medium whose URL is one of its fields. */
export interface MediaAttributes extends Pick<Resource, "width" | "height" | "tbr" | "filesize" | "language"> {
  data: Data;
  /** Media type, or a word such as `hls`. */
  type: string | null;
  label: string | null;
}

const hls = "application/vnd.apple.mpegurl";
const dash = "application/dash+xml";
const mediaType = /^(?:(?:video|audio)\/\w|application\/(?:(?:x-)?mpegurl|vnd\.apple|dash))/i;

/** Returns what the fields of an object say of the medium that it names. */
export function readAttributes(data: Data): MediaAttributes {
  const { type, format, label, size, width, height, bitRate, language } = readTexts(data, [
    "type",
    "format",
    "label",
    "size",
    "width",
    "height",
    "bitRate",
    "language",
  ]);
  return {
    data,
    type: [type, format].find((each) => each !== undefined && isMediaType(each)) ?? null,
    label: label ?? null,
    width: parsePixels(width),
    height: parsePixels(height) ?? parseQuality(size),
    tbr: parseBitRate(bitRate),
    filesize: parseSize(size),
    language: parseLanguage(language),
  };
}

/** Returns the medium that a field's value is the URL of; null if it is not a medium's URL. */
export function resourceOf(key: string, value: string, attributes: MediaAttributes, base: URL): Resource | null {
  const { data, width, tbr, filesize, language } = attributes;
  const isNamed = namesFile(value) || attributes.type !== null || isManifestName(key, data);
  if (!isNamed) return null;
  const decoded = /^https?%3A%2F%2F/i.test(value) ? (decodePercents(value) ?? value) : value;
  const url = tryParseUrl(decoded.replaceAll("&amp;", "&"), base);
  if (url === null || isPicture(url)) return null;
  const isMedium = isMediaKind(mediaTypeOf(null, url).kind);
  // `1.mp4.srt` and `1.mp4.jpg` are other files.
  if (!isMedium && /\.[a-z][a-z\d]{1,4}$/i.test(url.pathname)) return null;
  const type = typeOf(key, attributes);
  if (!isMedium && type === null) return null;
  const isUseful = !isMedium || type?.includes("codecs") === true;
  return createResource(url, "media", {
    type: isUseful ? type : null,
    fallback: type?.toLowerCase().startsWith("audio/") === true ? "audio" : "video",
    width,
    height: attributes.height ?? heightIn([key, attributes.label, data.name]) ?? qualityInPath(url),
    tbr,
    filesize,
    language,
  });
}

function isMediaType(text: string): boolean {
  return mediaType.test(text) || properties.has(text, "formatWord");
}

/** Whether the URL asks the server for a frame of the video. */
function isPicture({ search }: URL): boolean {
  return /snapshot|format=(?:jpe?g|png|webp)|[?&]frame=/i.test(search.slice(0, 1_000));
}

function typeOf(key: string, { type, data }: MediaAttributes): string | null {
  if (type?.includes("/") === true) return type;
  const name = isManifestName(key, data) ? `${key} ${data.name}` : (type ?? "");
  if (names.has(name, "hls")) return hls;
  if (names.has(name, "dash")) return dash;
  const format = name.toLowerCase();
  if (format === "mp3") return "audio/mpeg";
  return format === "mp4" || format === "webm" ? `video/${format}` : null;
}

function heightIn(labels: readonly (string | null)[]): number | null {
  return labels.map(parseQuality).find((height) => height !== null) ?? null;
}

/** Returns kbit/s; rates over 30,000 are bit/s. */
function parseBitRate(text = ""): number | null {
  const rate = Number(/^\d{2,9}(?:\.\d{1,3})?$/.exec(text)?.[0] ?? 0);
  if (rate <= 0) return null;
  return rate > 30_000 ? Math.round(rate) / 1_000 : rate;
}

/** Returns bytes; less than 5,000 may be a height. */
function parseSize(text = ""): number | null {
  const size = Number(/^\d{4,14}$/.exec(text)?.[0] ?? 0);
  return size >= 5_000 ? size : null;
}
