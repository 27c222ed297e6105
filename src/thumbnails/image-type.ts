/** The media types of images that are passed on; SVG is not among them, as it can contain scripts. */
export type ImageType = "image/avif" | "image/gif" | "image/jpeg" | "image/png" | "image/webp";

/** Enough of an image to tell its type, bytes. */
export const typeBytes = 64;

/** Returns the type by the signature at the start (MIME Sniffing Standard §6.1, AVIF §6); undefined if it is another. */
export function imageTypeOf(bytes: Buffer): ImageType | undefined {
  const head = bytes.toString("latin1", 0, typeBytes);
  if (head.startsWith("\xFF\xD8\xFF")) return "image/jpeg";
  if (head.startsWith("\x89PNG\r\n\x1A\n")) return "image/png";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  if (/^RIFF[^]{4}WEBPVP/.test(head)) return "image/webp";
  return hasAvifBrand(bytes) ? "image/avif" : undefined;
}

/** Looks among the brands of a file type box (ISO 14496-12 §4.3): the major one, then from byte 16 the compatible ones. */
function hasAvifBrand(bytes: Buffer): boolean {
  if (bytes.length < 16 || bytes.toString("latin1", 4, 8) !== "ftyp") return false;
  const end = Math.min(bytes.readUInt32BE(0), bytes.length, typeBytes);
  for (let at = 8; at + 4 <= end; at += at === 8 ? 8 : 4) {
    if (/^avi[fs]$/.test(bytes.toString("latin1", at, at + 4))) return true;
  }
  return false;
}
