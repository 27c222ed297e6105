import { ServiceError } from "../../model/errors.ts";
import { readManifestText, sniffManifest } from "../../manifests/text.ts";
import { parseContentRange } from "../../net/byte-range.ts";
import type { HttpResponse } from "../../net/client.ts";
import { type MediaKind, type MediaType, mediaTypeOf } from "../../parsers/media-type.ts";
import type { TimeSlices } from "../../parsers/steps.ts";
import { parseLine } from "../../parsers/text.ts";
import { nameInPath } from "../../parsers/url.ts";
import { readFileHeader } from "../../remux/file-header.ts";
import type { FileHeader } from "../../remux/media-summary.ts";
import { PageText } from "./markup/charset.ts";
import type { Markup } from "./markup/markup.ts";
import { readMarkup } from "./markup/read-markup.ts";
import { createResource, type Metadata } from "./metadata.ts";

/** What a response is, read as far as needed. */
export type Content =
  | { kind: "page"; markup: Markup }
  | { kind: "manifest"; protocol: "m3u8" | "dash"; text: string }
  | { kind: "media"; metadata: Metadata };

const sniffBytes = 1024;

/**
 * Reads a response: a page or a manifest to its end; of a media file it uses the response's header only. Its kind is
 * that of `Content-Type`, else of the URL's extension, else of the first 1,024 bytes.
 *
 * @throws ServiceError `upstream_invalid` if it is none of these, and the errors of the body;
 * `signal.reason`
 */
export async function readContent(response: HttpResponse, slices: TimeSlices, signal: AbortSignal): Promise<Content> {
  const contentType = response.headers.get("content-type") ?? null;
  const body = response.body[Symbol.asyncIterator]();
  try {
    const stated = mediaTypeOf(contentType, response.url);
    const mustSniff = stated.kind === "unknown" && stated.mime_type === null;
    const head = mustSniff ? await readHead(body) : [];
    const type = mustSniff ? { ...stated, ...sniff(Buffer.concat(head)) } : stated;
    const resource = { url: response.url, type, contentType, headers: response.headers };
    return await readAs(resource, concat(head, body), slices, signal);
  } finally {
    await body.return?.();
  }
}

interface TypedResponse extends Pick<HttpResponse, "url" | "headers"> {
  type: MediaType;
  contentType: string | null;
}

async function readAs(
  { url, headers, type, contentType }: TypedResponse,
  body: AsyncIterable<Uint8Array>,
  slices: TimeSlices,
  signal: AbortSignal,
): Promise<Content> {
  const { kind } = type;
  if (kind === "page") {
    return { kind, markup: await readMarkup(new PageText(body, contentType), slices, signal) };
  }
  if (kind === "hls" || kind === "dash") {
    return { kind: "manifest", protocol: kind === "hls" ? "m3u8" : "dash", text: await readManifestText(body) };
  }
  if (kind === "video" || kind === "audio") {
    return { kind: "media", metadata: extractFile(url, kind, type.mime_type, headers) };
  }
  const what = contentType === null ? "and has no Content-Type" : `but ${contentType.slice(0, 100)}`;
  const message = `${url.href.slice(0, 200)} is neither a web page nor media, ${what}`;
  if (/[/+]xml$/.test(type.mime_type ?? "")) throw new OtherXmlError("upstream_invalid", message);
  throw new ServiceError("upstream_invalid", message);
}

/** A document that others than web pages are in, such as a feed. */
export class OtherXmlError extends ServiceError {}

function extractFile(
  url: URL,
  kind: "video" | "audio",
  mime_type: string | null,
  headers: ReadonlyMap<string, string>,
): Metadata {
  const length = headers.has("content-encoding") ? "" : (headers.get("content-length") ?? "");
  const filesize = /^\d{1,15}$/.test(length) && Number(length) > 0 ? Number(length) : null;
  return {
    title: parseLine(nameInPath(url.href)),
    resources: [createResource(url, "media", { type: mime_type, fallback: kind, filesize })],
    media_type: kind,
  };
}

/** Returns the kind by the first bytes. Compares with the signatures of the MIME Sniffing Standard §6.2, and of pages and manifests. */
function sniff(head: Buffer): Pick<MediaType, "kind" | "mime_type"> {
  const is = (kind: MediaKind, mime_type: string | null) => ({ kind, mime_type });
  const manifest = sniffManifest(head);
  if (manifest !== null) return is(manifest === "m3u8" ? "hls" : "dash", null);
  const text = head.toString("latin1").replace(/^(?:\xEF\xBB\xBF)?\s+|^\xEF\xBB\xBF/, "");
  if (/^<(?:!doctype html|html|head|meta|script|title|body|!--|\?xml)/i.test(text)) {
    return is("page", null);
  }
  if (/^<(?:rss|feed|rdf:RDF)[\s>]/.test(text)) return is("unknown", "application/xml");
  const bytes = head.toString("latin1");
  if (bytes.startsWith("ftyp", 4)) return is("video", "video/mp4");
  if (bytes.startsWith("\x1A\x45\xDF\xA3")) return is("video", "video/webm");
  if (bytes.startsWith("OggS\0")) return is("audio", "audio/ogg");
  if (bytes.startsWith("ID3")) return is("audio", "audio/mpeg");
  if (bytes.startsWith("RIFF") && bytes.startsWith("WAVE", 8)) return is("audio", "audio/wav");
  return is("unknown", null);
}

async function readHead(body: AsyncIterator<Uint8Array>): Promise<Uint8Array[]> {
  const head: Uint8Array[] = [];
  let length = 0;
  while (length < sniffBytes) {
    const next = await body.next();
    if (next.done === true) break;
    head.push(next.value);
    length += next.value.length;
  }
  return head;
}

async function* concat(head: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>) {
  yield* head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

/** What a server and the first bytes tell of a media file; `null`: they do not tell it. */
export interface FileInfo extends Omit<FileHeader, "container"> {
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
export async function readFileInfo(response: HttpResponse): Promise<FileInfo | null> {
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
function typeOf(container: FileHeader["container"] | null, { vcodec }: Pick<FileHeader, "vcodec">): string | null {
  if (container === null) return null;
  return `${vcodec === "none" ? "audio" : "video"}/${container === "matroska" ? "x-matroska" : container}`;
}
