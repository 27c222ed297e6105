import { parseContentRange } from "../../net/byte-range.ts";
import type { HttpResponse } from "../../net/client.ts";
import { mediaTypeOf } from "../../parsers/media-type.ts";
import { readFileHeader } from "../../remux/file-header.ts";
import type { FileHeader } from "../../remux/media-summary.ts";
import { sniff } from "./content.ts";

/** What a server and the first bytes tell of a media file; `null`: they do not tell it. */
export interface FileFacts extends Omit<FileHeader, "container"> {
  /** Bytes. */
  filesize: number | null;
  /** Of the first bytes, else of the response; without parameters. */
  mime_type: string | null;
}

/** The range to request. */
export const firstBytes = { offset: 0, length: 65_536 };

/**
 * Reads the first bytes of a file from the response to a request for `firstBytes`, and closes it. Of a response without
 * a length, which may be an endless stream, only what arrives first is read.
 *
 * Returns null if the response is no media file. Rejects with the errors of the body.
 */
export async function readFileFacts(response: HttpResponse): Promise<FileFacts | null> {
  const { headers, url } = response;
  const start = await readStart(response);
  const sniffed = sniff(start.bytes);
  const stated = mediaTypeOf(headers.get("content-type") ?? null, url);
  const { kind, mime_type } = sniffed.kind === "unknown" ? stated : sniffed;
  if (start.bytes.length === 0 || (kind !== "video" && kind !== "audio")) return null;
  const { container, ...header } = readFileHeader(start.bytes) ?? unknownHeader;
  const filesize = readSize(response) ?? (start.hasEnded ? start.bytes.length : null);
  return { ...header, filesize, mime_type: typeOf(container, header) ?? mime_type };
}

const unknownHeader = {
  container: null,
  duration: null,
  width: null,
  height: null,
  fps: null,
  vcodec: null,
  acodec: null,
} as const;

/** `hasEnded`: the bytes are the whole file. */
async function readStart(response: HttpResponse): Promise<{ bytes: Buffer; hasEnded: boolean }> {
  const { body, status, headers } = response;
  const isBounded = status === 206 || headers.has("content-length");
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (!isBounded || length >= firstBytes.length) {
      return { bytes: Buffer.concat(chunks).subarray(0, firstBytes.length), hasEnded: false };
    }
  }
  return { bytes: Buffer.concat(chunks), hasEnded: status === 200 };
}

/** Returns the size of the whole file as the response states it. */
function readSize({ status, headers }: HttpResponse): number | null {
  if (status === 206) return parseContentRange(headers.get("content-range"))?.total ?? null;
  const length = headers.get("content-length") ?? "";
  return /^\d{1,15}$/.test(length) ? Number(length) || null : null;
}

/** Returns the media type of a container by whether it has video. */
function typeOf(
  container: FileHeader["container"] | null,
  { vcodec }: Pick<FileHeader, "vcodec">,
): string | null {
  if (container === null) return null;
  return `${vcodec === "none" ? "audio" : "video"}/${container === "matroska" ? "x-matroska" : container}`;
}
