import type { Codecs } from "./attributes.ts";

export type TrackKind = "video" | "audio" | "text";

/** Media types of text that are not `text/…`. */
const textTypes: ReadonlySet<string> = new Set(["application/ttml+xml", "application/x-subrip"]);

/** What a contentType may be (RFC 6838 §4.2); other words say nothing, such as "muxed". */
const contentTypes: ReadonlySet<string> = new Set(["video", "audio", "text", "image", "application", "font"]);

/** What an MPD states of a track's kind. */
interface StatedKind {
  contentType: string | undefined;
  mimeType: string | null;
  codecs: Codecs;
  /** It has a width or a height. */
  isSized: boolean;
  /** It has a sampling rate or channels. */
  isSampled: boolean;
}

/**
 * Returns what a track is, `null` if unknown: `contentType` counts first, then the media type, then the codecs. But video or audio is
 * the other one if the media type and the codecs agree on that, and what has a media type of audio is video only by its codecs: there
 * is no video in such a file (RFC 4337 §2). One of video may have audio alone, which its codecs say if it has no size. What has codecs of
 * text alone is text, and a media type of images is none of these, whatever else is stated. A size or a sampling rate count only if
 * nothing else says it.
 */
export function trackKind({ contentType, mimeType, codecs, isSized, isSampled }: StatedKind): TrackKind | null {
  const { vcodec, acodec, text } = codecs;
  const ofType = mimeType?.split("/", 1)[0];
  const ofCodecs = isCodec(vcodec) ? "video" : isCodec(acodec) ? "audio" : undefined;
  const word = contentType?.trim().toLowerCase() ?? "";
  const stated = contentTypes.has(word) ? word : undefined;
  const kind = stated ?? ofType;
  if (kind === "image" || ofType === "image") return null;
  if (kind === "text" || (text && vcodec === "none" && acodec === "none")) return "text";
  if (kind === "audio") return ofType === "video" && ofCodecs === "video" ? "video" : "audio";
  if (kind !== "video") {
    const isText = text || textTypes.has(mimeType ?? "");
    const bySize = isSampled ? "audio" : isSized && stated === undefined ? "video" : null;
    return ofCodecs ?? (isText ? "text" : bySize);
  }
  if (ofType === "audio") return ofCodecs ?? "audio";
  const isAudio = !stated && !isSized && vcodec === "none" && ofCodecs === "audio";
  return isAudio ? "audio" : "video";
}

const isCodec = (codec: string | null): boolean => codec !== null && codec !== "none";
