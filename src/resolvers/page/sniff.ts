import { sniffManifest, sniffRoot } from "../../manifests/text.ts";
import { type MediaType, sniffMedium } from "../../parsers/media-type.ts";

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
  const { kind, mime_type } = sniffMedium(head) ?? (bytes.startsWith("\x0B\x77") ? ac3 : unknown);
  return { kind, mime_type };
}

const unknown = { kind: "unknown", mime_type: null } as const;
const ac3 = { kind: "audio", mime_type: "audio/ac3" } as const;

const feedRoots: ReadonlySet<string> = new Set(["rss", "feed", "RDF"]);

/** As many bytes as are needed. */
export const sniffBytes = 1024;
