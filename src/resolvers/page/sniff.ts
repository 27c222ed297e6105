import { sniffManifest, sniffRoot } from "../../manifests/text.ts";
import type { MediaKind, MediaType } from "../../parsers/media-type.ts";

type SniffedType = Pick<MediaType, "kind" | "mime_type">;

/**
 * Returns what a response is by its first bytes: the signatures of the MIME Sniffing Standard §6.2 and of other media files,
 * of pages, manifests and feeds.
 */
export function sniff(head: Uint8Array): SniffedType {
  const manifest = sniffManifest(head);
  if (manifest !== null) return { kind: manifest === "m3u8" ? "hls" : "dash", mime_type: null };
  const bytes = Buffer.from(head.subarray(0, sniffBytes)).toString("latin1");
  const text = bytes.replace(/^(?:\xEF\xBB\xBF)?\s+|^\xEF\xBB\xBF/, "");
  const isHtml = /^<!doctype html/i.test(text);
  if (!isHtml && feedRoots.has(sniffRoot(head) ?? "")) return { kind: "feed", mime_type: null };
  if (/^<(?:!doctype html|html|head|meta|script|title|body|!--|\?xml)/i.test(text)) {
    return { kind: "page", mime_type: null };
  }
  const [, kind, mime_type] = signatures.find(([pattern]) => pattern.test(bytes)) ?? [null, "unknown", null];
  return { kind, mime_type };
}

const feedRoots: ReadonlySet<string> = new Set(["rss", "feed", "RDF"]);

/** As many bytes as are needed. */
export const sniffBytes = 1024;

/** Files, as patterns of bytes in Latin-1. */
const signatures: readonly (readonly [pattern: RegExp, kind: MediaKind, mime_type: string])[] = [
  [/^[^]{4}ftypM4A /, "audio", "audio/mp4"],
  [/^[^]{4}ftypqt {2}/, "video", "video/quicktime"],
  [/^[^]{4}ftyp/, "video", "video/mp4"],
  [/^[^]{4}(?:moov|moof|styp|wide)/, "video", "video/mp4"],
  [/^\x1A\x45\xDF\xA3[^]{0,64}\x42\x82[^]{1,8}matroska/, "video", "video/x-matroska"],
  [/^\x1A\x45\xDF\xA3/, "video", "video/webm"],
  [/^OggS\0[^]{20,500}\x80theora/, "video", "video/ogg"],
  [/^OggS\0/, "audio", "audio/ogg"],
  [/^ID3/, "audio", "audio/mpeg"],
  [/^fLaC/, "audio", "audio/flac"],
  [/^(?:RIFF|RF64)[^]{4}WAVE/, "audio", "audio/wav"],
  [/^RIFF[^]{4}AVI /, "video", "video/x-msvideo"],
  [/^FLV\x01/, "video", "video/x-flv"],
  [/^\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\x00\xAA\x00\x62\xCE\x6C/, "video", "video/x-ms-wmv"],
  [/^\x00\x00\x01[\xBA\xB3]/, "video", "video/mpeg"],
  [/^(?:[^]{4})?G[^]{187}(?:[^]{4})?G[^]{187}(?:[^]{4})?G/, "video", "video/mp2t"],
  [/^FORM[^]{4}AIF[FC]/, "audio", "audio/aiff"],
  // Headers of audio frames: ADTS, MPEG layers 1 to 3, AC-3.
  [/^\xFF[\xF0\xF1\xF8\xF9]/, "audio", "audio/aac"],
  [/^\xFF[\xE2-\xE7\xF2-\xF7\xFA-\xFF]/, "audio", "audio/mpeg"],
  [/^\x0B\x77/, "audio", "audio/ac3"],
];
