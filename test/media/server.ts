import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Fault, Faults } from "./faults.ts";
import { startSite } from "./site.ts";

/** An HTTP server on 127.0.0.1 that serves media from memory and can go wrong in every known way. */
export interface MediaServer {
  url(path: string, host?: string): URL;
  /** Serves `body` under `path` from now on, in place of what was there. */
  serve(path: string, body: Uint8Array | string, faults?: Faults): void;
  /** All that came, in order. */
  readonly requests: readonly MediaRequest[];
  /** Bytes of bodies sent so far for `path`, or for all. */
  bytesSent(path?: string): number;
  /** Resolves once `isSo` holds; it is asked at each request, each piece sent, each answer's end. */
  waitFor(isSo: () => boolean): Promise<void>;
  /** Ends all connections; safe to call twice. */
  close(): Promise<void>;
}

export interface MediaRequest {
  path: string;
  /** How many of this path came before. */
  nth: number;
  headers: IncomingMessage["headers"];
  /** `performance.now()` of its arrival. */
  atMs: number;
  /** Of the answer; 0 until it begins. */
  status: number;
  /** Bytes of the answer's body. */
  sent: number;
  /** The answer, or the connection, has ended. */
  isOver: boolean;
}

/** Starts a site of which each path that is served can go wrong. */
export async function startMediaServer(): Promise<MediaServer> {
  const requests: MediaRequest[] = [];
  const site = await startSite(new Map());
  return {
    requests,
    url(path, host = "127.0.0.1") {
      const url = new URL(site.url(path.slice(1)));
      url.hostname = host;
      return url;
    },
    serve(path, body, faults = {}) {
      const bytes = Buffer.from(body);
      site.answer(path.slice(1), async (response, _, { headers }) => {
        const nth = requests.filter((earlier) => earlier.path === path).length;
        const request = { path, nth, headers, atMs: performance.now(), status: 0, sent: 0, isOver: false };
        requests.push(request);
        response.once("close", () => {
          request.isOver = true;
          site.look();
        });
        await answer(request, response, bytes, typeof faults === "function" ? faults(request) : faults, site.look);
      });
    },
    bytesSent(path) {
      const counted = requests.filter((request) => path === undefined || request.path === path);
      return counted.reduce((sum, { sent }) => sum + sent, 0);
    },
    waitFor: site.until,
    close: site.close,
  };
}

async function answer(
  request: MediaRequest,
  response: ServerResponse,
  body: Buffer,
  fault: Fault,
  onSent: () => void,
): Promise<void> {
  if (fault.delayMs !== undefined) await delay(fault.delayMs);
  const { status, fields, bytes } = answerOf(request, body, fault);
  request.status = status;
  response.statusCode = status;
  for (const [name, value] of Object.entries({ ...fields, ...fault.headers })) {
    if (value !== null) response.setHeader(name, value);
  }
  if (fault.length !== undefined) response.removeHeader("content-length");
  if (fault.length === "closing") {
    response.shouldKeepAlive = false;
    response.removeHeader("transfer-encoding");
  }
  response.flushHeaders();
  await send(request, response, bytes, fault, onSent);
}

interface Answer {
  status: number;
  fields: Record<string, string>;
  bytes: Buffer;
}

function answerOf({ headers }: MediaRequest, body: Buffer, fault: Fault): Answer {
  if (fault.status !== undefined) {
    const bytes = Buffer.from(`status ${fault.status}`);
    return { status: fault.status, fields: { "content-length": `${bytes.length}` }, bytes };
  }
  const etag = `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"`;
  const whole = fault.gzip === true ? gzipSync(body) : body;
  const common = {
    etag,
    ...(fault.gzip === true && { "content-encoding": "gzip" }),
    ...(fault.ignoresRange !== true && { "accept-ranges": "bytes" }),
  };
  const range = rangeOf(headers, { etag, ...fault.headers }, fault);
  if (range === undefined) {
    const length = `${whole.length + (fault.lengthLie ?? 0)}`;
    return { status: 200, fields: { ...common, "content-length": length }, bytes: whole };
  }
  const { start, end = body.length - 1 } = range;
  const bytes = body.subarray(start, end + 1);
  if (bytes.length === 0) {
    const fields = { "content-range": `bytes */${body.length}`, "content-length": "0" };
    return { status: 416, fields, bytes };
  }
  const fields = {
    ...common,
    "content-range": `bytes ${start}-${start + bytes.length - 1}/${body.length}`,
    "content-length": `${bytes.length + (fault.lengthLie ?? 0)}`,
  };
  return { status: 206, fields, bytes };
}

/** The range to answer with, if `Range` and `If-Range` (RFC 9110 §13.1.5) want one. */
function rangeOf(
  headers: MediaRequest["headers"],
  validators: Readonly<Record<string, string | null>>,
  { ignoresRange, ignoresRangeEnd, ignoresIfRange, gzip }: Fault,
): { start: number; end?: number } | undefined {
  const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
  if (start === undefined || ignoresRange === true || gzip === true) return undefined;
  const ifRange = ignoresIfRange === true ? undefined : headers["if-range"];
  const { etag, "last-modified": modified } = validators;
  if (ifRange !== undefined && ifRange !== etag && ifRange !== modified) return undefined;
  return end === "" || ignoresRangeEnd === true ? { start: Number(start) } : { start: Number(start), end: Number(end) };
}

const pieceBytes = 64 * 1024;

async function send(
  request: MediaRequest,
  response: ServerResponse,
  bytes: Buffer,
  { cutAfter, stallAfter, lengthLie = 0 }: Fault,
  onSent: () => void,
): Promise<void> {
  const limit = Math.min(cutAfter ?? bytes.length, stallAfter ?? bytes.length, bytes.length);
  while (request.sent < limit && !request.isOver) {
    const piece = bytes.subarray(request.sent, Math.min(request.sent + pieceBytes, limit));
    await write(response, piece);
    request.sent += piece.length;
    onSent();
  }
  if (cutAfter !== undefined) response.socket?.destroy();
  else if (stallAfter === undefined) response.end();
  // What was promised will not come.
  if (lengthLie > 0) response.socket?.end();
}

function write(response: ServerResponse, piece: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once("close", resolve);
  response.write(piece, () => {
    response.off("close", resolve);
    resolve();
  });
  return promise;
}
