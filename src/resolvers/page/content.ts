import { ServiceError } from "../../model/errors.ts";
import { hasNoManifest, sniffManifest, sniffRoot } from "../../manifests/text.ts";
import { parseContentRange } from "../../net/byte-range.ts";
import type { HttpResponse } from "../../net/client.ts";
import {
  isManifest,
  isMediaKind,
  isVagueType,
  type MediaType,
  mediaTypeOf,
  sniffMedium,
} from "../../parsers/media-type.ts";
import { parseLine } from "../../parsers/text.ts";
import { nameInPath } from "../../model/url-parts.ts";
import { readFileHeader } from "../../remux/file-header.ts";
import type { FileHeader } from "../../remux/media-summary.ts";
import type { MediaList } from "./lists/feed.ts";
import { isHls } from "./lists/playlists.ts";
import { createResource, type Metadata } from "./metadata.ts";
import type { RequestBodies } from "./reader/bodies.ts";
import type { PageDraft, ReadContext, Reader } from "./reader/reader.ts";

/** What a response is, read as far as needed. */
export type Content =
  | { kind: "page"; draft: PageDraft }
  | { kind: "manifest"; protocol: "m3u8" | "dash"; body: Uint8Array[] }
  | { kind: "list"; source: "feed" | "m3u" | "pls"; list: MediaList }
  | { kind: "media"; metadata: Metadata };

interface ContentContext extends ReadContext {
  reader: Reader;
  bodies: RequestBodies;
  /** When the page was asked for. */
  now: Date;
  /** Whether a page led to it. */
  isPlayer: boolean;
  /** Entries of a list before those that are wanted. */
  entriesStart: number;
}

/**
 * Reads a response: a page, a manifest or a list of media to its end; of a media file it uses the response's header only. Its kind is
 * that of `Content-Type`, else of the URL's extension, else of the first 1,024 bytes. These count before a type that servers
 * send for files that they do not know (octet-stream, plain text, HTML).
 *
 * @throws ServiceError `upstream_invalid` if it is none of these, retryable if its type or URL says that it is a manifest; the errors of
 * the body and the reader; `signal.reason`
 */
export async function readContent(response: HttpResponse, context: ContentContext): Promise<Content> {
  const contentType = response.headers.get("content-type") ?? null;
  const body = response.body[Symbol.asyncIterator]();
  try {
    const stated = mediaTypeOf(contentType, response.url);
    const head = isVagueType(contentType) ? await readHead(body) : [];
    const type = typeByBytes(stated, Buffer.concat(head.map((chunk) => chunk.subarray(0, maxSniffedBytes))));
    const resource = { url: response.url, type, contentType, headers: response.headers };
    return await readAs(resource, concat(head, body), context);
  } finally {
    await body.return?.();
  }
}

/** Returns what a response is by its stated type and its first bytes; without them, what is stated. */
function typeByBytes(stated: MediaType, head: Buffer): MediaType {
  const sniffed = head.length > 0 ? sniff(head) : stated;
  const isFile = ({ kind }: Pick<MediaType, "kind">) => kind === "video" || kind === "audio";
  // The URL's extension says more of a file.
  if (isFile(stated) && isFile(sniffed)) return stated;
  const isKnown = isMediaKind(sniffed.kind) || sniffed.kind === "feed" || sniffed.kind === "pls";
  return stated.kind === "unknown" || isKnown ? { ...stated, ...sniffed } : stated;
}

interface TypedResponse extends Pick<HttpResponse, "url" | "headers"> {
  type: MediaType;
  contentType: string | null;
}

async function readAs(
  { url, headers, type, contentType }: TypedResponse,
  body: AsyncIterable<Uint8Array>,
  context: ContentContext,
): Promise<Content> {
  const { reader, bodies, signal, now, isPlayer, entriesStart: start } = context;
  const { kind } = type;
  if (kind === "page") {
    const job = { kind, url, contentType, now, isPlayer } as const;
    return { kind, draft: await reader.read(job, await bodies.read(body, signal), context) };
  }
  if (kind === "hls" || kind === "dash") {
    const manifest = await bodies.read(body, signal);
    const list =
      kind === "dash" || isHls(manifest) ? null : await reader.read({ kind: "m3u", url, start }, manifest, context);
    if (list !== null) return { kind: "list", source: "m3u", list };
    if (hasNoManifest(Buffer.concat(manifest))) throw noManifestError(url);
    return { kind: "manifest", protocol: kind === "hls" ? "m3u8" : "dash", body: manifest };
  }
  if (kind === "feed" || kind === "pls") {
    const list = await reader.read({ kind, url, start }, await bodies.read(body, signal), context);
    if (list !== null) return { kind: "list", source: kind, list };
  }
  if (kind === "video" || kind === "audio") {
    return { kind: "media", metadata: extractFile(url, kind, type.mime_type, headers) };
  }
  const list = kind === "pls" ? "PLS" : kind === "feed" ? kind : null;
  const found = list === null ? "neither a web page nor media" : `a ${list} of which no entry can be fetched`;
  const stated = contentType === null ? "it has no Content-Type" : `its Content-Type is ${contentType.slice(0, 100)}`;
  const message = `${url.href.slice(0, 200)} is ${found}; ${stated}`;
  if (kind === "feed" || /[/+]xml$/.test(type.mime_type ?? "")) throw new OtherXmlError("upstream_invalid", message);
  throw new ServiceError("upstream_invalid", message, { retryable: isManifest(null, url) });
}

function noManifestError({ href }: URL): ServiceError {
  const message = `${href.slice(0, 200)} is called a manifest, and the response has nothing of one`;
  return new ServiceError("upstream_invalid", message, { retryable: true });
}

/** A document that others than web pages are in, such as a feed that lists nothing. */
export class OtherXmlError extends ServiceError {}

function extractFile(
  url: URL,
  kind: "video" | "audio",
  mime_type: string | null,
  headers: ReadonlyMap<string, string>,
): Metadata {
  const filesize = headers.has("content-encoding") ? null : statedLength(headers);
  return {
    title: parseLine(nameInPath(url.href)),
    resources: [createResource(url, "media", { type: mime_type, fallback: kind, filesize })],
  };
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

/** What a server and the first bytes say of a media file; `null`: they do not say it. */
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
  return status === 206 ? (parseContentRange(headers.get("content-range"))?.total ?? null) : statedLength(headers);
}

/** Returns the bytes of a body that has some, if the response states how many. */
function statedLength(headers: HttpResponse["headers"]): number | null {
  const length = headers.get("content-length") ?? "";
  return /^\d{1,15}$/.test(length) ? Number(length) || null : null;
}

/** Returns the media type of a container by whether it has video. */
function typeOf(container: FileHeader["container"] | null, { vcodec }: Pick<FileHeader, "vcodec">): string | null {
  if (container === null) return null;
  return `${vcodec === "none" ? "audio" : "video"}/${container === "matroska" ? "x-matroska" : container}`;
}

type SniffedType = Pick<MediaType, "kind" | "mime_type">;

/**
 * Returns what a response is by its first bytes: the signatures of the MIME Sniffing Standard §6.2 and of other media files,
 * of pages, manifests and feeds.
 */
function sniff(head: Uint8Array): SniffedType {
  const bytes = Buffer.from(head.subarray(0, sniffBytes)).toString("latin1");
  const text = bytes.replace(/^(?:\xEF\xBB\xBF)?\s+|^\xEF\xBB\xBF/, "");
  if (/^<!doctype html/i.test(text)) return { kind: "page", mime_type: null };
  const manifest = sniffManifest(head);
  if (manifest !== null) return { kind: manifest === "m3u8" ? "hls" : "dash", mime_type: null };
  if (/^\[playlist\]\s/i.test(text)) return { kind: "pls", mime_type: null };
  if (feedRoots.has(sniffRoot(head) ?? "")) return { kind: "feed", mime_type: null };
  if (/^<(?:html|head|meta|script|title|body|!--|\?xml)/i.test(text)) {
    return { kind: "page", mime_type: null };
  }
  const { kind, mime_type } = sniffMedium(head) ?? (bytes.startsWith("\x0B\x77") ? ac3 : unknown);
  return { kind, mime_type };
}

const unknown = { kind: "unknown", mime_type: null } as const;
const ac3 = { kind: "audio", mime_type: "audio/ac3" } as const;

const feedRoots: ReadonlySet<string> = new Set(["rss", "feed", "RDF"]);

/** As many bytes as are needed; and as are looked at, if there are more. */
const sniffBytes = 1024;
const maxSniffedBytes = 2 * sniffBytes;
