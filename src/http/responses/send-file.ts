import type { Readable } from "node:stream";
import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { FileStore } from "../../files/files.ts";
import { type ErrorCode, ServiceError } from "../../model/errors.ts";
import type { ResultFile } from "../../model/task.ts";
import type { IntRange } from "../../net/byte-range.ts";
import { noContent } from "./empty.ts";
import { assertIfMatch, ConditionHeaders, findMatch } from "./etag.ts";
import { type FileStreams, parseRange, recipientOf } from "./file-streams.ts";
import { problems } from "./problem.ts";

const bytes = { schema: Type.Unsafe<unknown>({ description: "the file's bytes" }) };
export const media = { "video/*": bytes, "audio/*": bytes };
export const archive = { "application/zip": bytes };
export const anyFile = { ...media, "text/vtt": bytes, "application/x-subrip": bytes, "image/*": bytes };

const fileHeaders = {
  etag: { type: "string", description: "strong validator: the file's SHA-256" },
  "accept-ranges": { type: "string", enum: ["bytes"] },
  "repr-digest": { type: "string", description: "SHA-256 of the whole file (RFC 9530)" },
  "content-disposition": { type: "string", description: "`attachment` with the file name" },
};

/** Returns what the schemas of routes have that send files of this content, and may also fail with `errors`. */
export function getFileSchema(content: object, errors: readonly ErrorCode[]) {
  return {
    description:
      "A single `Range` gets 206, several ranges get the whole file. Send the `ETag` as " +
      "`If-Range` or `If-Match` to resume a download (the whole file or 412 if it has changed), or as " +
      "`If-None-Match` to get 304 if it is unchanged.",
    headers: ConditionHeaders,
    response: {
      200: { description: "the whole file", headers: fileHeaders, content },
      206: { description: "the requested range", headers: fileHeaders, content },
      304: noContent("the file still has the `ETag` of `If-None-Match`"),
      ...problems(...errors, "precondition_failed", "range_not_satisfiable"),
    },
  };
}

type ServedFile = Pick<ResultFile, "name" | "mime_type" | "size" | "sha256">;

/** What is served: a file, or what is made of several. */
interface Representation extends Pick<ServedFile, "name" | "mime_type" | "size"> {
  /** Strong validator. */
  etag: string;
  /** SHA-256 of it all, hexadecimal; absent: unknown. */
  sha256?: string;
}

/** A file of a task, and its number in the file store. */
export interface StoredFile {
  id: string;
  number: number;
  file: ServedFile;
}

export type SentRequest = Pick<FastifyRequest, "caller" | "headers" | "log" | "method" | "sharer">;

export type SendFile = ReturnType<typeof createFileSender>;

/** Creates a function that sends files of tasks, or their heads, with conditions and ranges (RFC 9110 §13, §14). */
export function createFileSender(files: FileStore, streams: FileStreams) {
  return async function sendFile(request: SentRequest, reply: FastifyReply, { id, number, file }: StoredFile) {
    const served = { ...file, etag: fileTag(file) };
    if (isUnmodified(request, served)) return sendNotModified(reply, served);
    const { handle, markInUse } = await openFile(files, id, file, number);
    const keep = () =>
      markInUse().catch((err: unknown) => {
        request.log.warn({ task: id, err }, "the file may be removed while it is sent");
        return true;
      });
    const isSending = request.method !== "HEAD" && rangeOf(request, served) !== "unsatisfiable";
    await (isSending ? keep() : handle.close());
    const recipient = recipientOf(request, reply);
    return sendRepresentation(request, reply, served, (range) => streams.open(handle, range, keep, recipient));
  };
}

/** Sends what is served, or its head, with conditions and ranges (RFC 9110 §13, §14); `open` reads its bytes. */
export function sendRepresentation(
  request: SentRequest,
  reply: FastifyReply,
  served: Representation,
  open: (range: IntRange) => Readable,
): FastifyReply {
  if (isUnmodified(request, served)) return sendNotModified(reply, served);
  if (request.method === "HEAD") return setFileHeaders(reply, served).send();
  const range = rangeOf(request, served);
  if (range === "unsatisfiable") throw unsatisfiableRangeError(request, reply, served);
  setRangeHeaders(setFileHeaders(reply, served), served, range);
  return sendBytes(reply, open(range ?? { start: 0, end: served.size - 1 }));
}

/** Sends the bytes of a file. If the first ones cannot be read, the response is a problem, without the header fields of the file. */
export function sendBytes(reply: FastifyReply, stream: Readable): FastifyReply {
  stream.once("error", () => {
    for (const name of [...Object.keys(fileHeaders), "content-range"]) reply.removeHeader(name);
  });
  return reply.send(stream);
}

/** @throws ServiceError `not_found` if the file is gone; `internal` if its size has changed. */
export async function openFile(files: FileStore, id: string, file: Pick<ServedFile, "size">, number: number) {
  const opened = await files.open(id, number);
  if (opened === undefined) throw new ServiceError("not_found", `the file of task ${id} is gone`);
  if (opened.size === file.size) return opened;
  await opened.handle.close();
  const sizes = `it has ${opened.size} bytes instead of ${file.size}`;
  throw new ServiceError("internal", `the file of task ${id} is damaged: ${sizes}`);
}

/** Returns the strong validator of a file: its SHA-256. */
export function fileTag(file: Pick<ServedFile, "sha256">): string {
  return `"${file.sha256}"`;
}

/** Whether the client has it already. @throws ServiceError `precondition_failed` if it asks for another version (RFC 9110 §13.2.2) */
function isUnmodified({ headers }: SentRequest, { etag }: Representation): boolean {
  assertIfMatch(headers["if-match"], etag);
  return findMatch(headers["if-none-match"], etag) !== undefined;
}

function sendNotModified(reply: FastifyReply, served: Representation): FastifyReply {
  return reply.code(304).header("etag", served.etag).send();
}

/** `If-Range` is compared strongly (RFC 9110 §13.1.5); a date never matches, as no response has one. */
function rangeOf({ headers }: SentRequest, { etag, size }: Representation) {
  const { range, "if-range": ifRange = etag } = headers;
  return range === undefined || ifRange !== etag ? undefined : parseRange(range, size);
}

function unsatisfiableRangeError({ headers }: SentRequest, reply: FastifyReply, { size, etag }: Representation) {
  // VLC asks for what is after the end, and then for ranges with the ETag of that response as `If-Match`.
  reply.headers({ "content-range": `bytes */${size}`, etag });
  const asked = `Range: ${headers.range?.slice(0, 100)}`;
  return new ServiceError("range_not_satisfiable", `the file has ${size} bytes; got ${asked}`);
}

function setFileHeaders(reply: FastifyReply, served: Representation): FastifyReply {
  const { name, mime_type, size, sha256 } = served;
  const digest = sha256 !== undefined && {
    "repr-digest": `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`,
  };
  return reply.headers({
    ...mediumHeaders(mime_type, name),
    "content-length": size,
    "accept-ranges": "bytes",
    ...digest,
    etag: served.etag,
  });
}

/** Returns the header fields of a medium. It is untrusted, so they keep browsers from running it as a page of this service. */
export function mediumHeaders(mimeType: string, name: string): Record<string, string> {
  return {
    "content-type": mimeType,
    "content-disposition": attachment(name),
    "content-security-policy": "default-src 'none'; sandbox",
  };
}

function setRangeHeaders(reply: FastifyReply, { size }: Representation, range: IntRange | undefined): void {
  if (range === undefined) return;
  reply.code(206).header("content-length", range.end - range.start + 1);
  reply.header("content-range", `bytes ${range.start}-${range.end}/${size}`);
}

/**
 * Returns the value of `Content-Disposition` with which browsers save a file as `name` (RFC 6266 §4):
 * `filename*` has the whole name (RFC 8187), `filename` an ASCII version for clients that do not know it.
 * A name without Latin letters and digits is a part of its hash there, so that those of several files differ.
 * Neither begins with `.` or `-`: the file would be hidden, or taken for an option.
 */
export function attachment(name: string): string {
  const safe = withPlainStart(
    name
      .toWellFormed()
      .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "")
      .replace(/[/\\]/g, "_"),
  );
  // curl and others save under this name: letters keep their base letter, without the diacritic.
  const ascii = withPlainStart(
    safe
      .normalize("NFD")
      .replace(/\p{M}/gu, "")
      .normalize("NFC")
      .replace(/[^ -~]|["%]/gu, "_"),
  );
  const [stem = ""] = ascii.split(".");
  const plain = /[a-z\d]/i.test(stem) ? ascii : `${shortHash(safe)}${ascii.slice(stem.length)}`;
  return `attachment; filename="${plain}"; filename*=UTF-8''${escapeAttribute(safe)}`;
}

const shortHash = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 12);

function withPlainStart(name: string): string {
  return name.replace(/^[\s.-]+/, "_");
}

/** Escapes all but RFC 8187's `attr-char`; `encodeURIComponent` leaves four more characters as they are. */
function escapeAttribute(text: string): string {
  const code = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();
  return encodeURIComponent(text).replace(/['()*]/g, (character) => `%${code(character)}`);
}
