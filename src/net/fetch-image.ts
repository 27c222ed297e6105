import { ServiceError } from "../model/errors.ts";
import type { HttpClient, GetOptions } from "./client.ts";
import { urlForMessage } from "./http-url.ts";

/** The media types of images that are passed on; SVG is not among them, as it can contain scripts. */
type ImageType = "image/avif" | "image/gif" | "image/jpeg" | "image/png" | "image/webp";

export interface Image {
  bytes: Buffer;
  type: ImageType;
}

const allTypes: readonly ImageType[] = ["image/avif", "image/webp", "image/png", "image/jpeg", "image/gif"];
const maxImageBytes = 2 * 1024 * 1024;

interface ImageRequest extends Pick<GetOptions, "headers" | "owner" | "signal"> {
  /** Default: all types that are passed on. */
  types?: readonly ImageType[];
}

/** Enough of an image to find out its type, bytes. */
const typeBytes = 64;

/**
 * Fetches an image that a page names: at most 2 MiB, of a type that its first bytes show, whatever the response
 * says of it.
 *
 * @throws ServiceError as `HttpClient.get`; `upstream_invalid` if the response is no image of `types`.
 */
export async function fetchImage(
  client: HttpClient,
  url: URL,
  { types = allTypes, ...request }: ImageRequest,
): Promise<Image> {
  const accept = types.join(",");
  const response = await client.get(url, { ...request, maxBytes: maxImageBytes, accept });
  const chunks: Uint8Array[] = [];
  let length = 0;
  let type: ImageType | undefined;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (type !== undefined || length < typeBytes) continue;
    type = imageTypeOf(Buffer.concat(chunks));
    // Leaves the rest of a page or a film unread.
    if (type === undefined) break;
  }
  const bytes = Buffer.concat(chunks);
  type ??= imageTypeOf(bytes);
  if (type !== undefined && types.includes(type)) return { bytes, type };
  const what = `GET ${urlForMessage(response.url)}`;
  throw new ServiceError("upstream_invalid", `${what} returned no image of type ${accept}`);
}

/** Returns the type by the signature at the start (MIME Sniffing Standard §6.1, AVIF §6); undefined if it is another. */
function imageTypeOf(bytes: Buffer): ImageType | undefined {
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
