import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Fault, Faults } from "./faults.ts";
import { listen } from "../net/listen.ts";

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

interface Served {
  body: Buffer;
  faults: Faults;
}

/** An unknown path is answered with 404. */
export async function startMediaServer(): Promise<MediaServer> {
  const media = new Map<string, Served>();
  const requests: MediaRequest[] = [];
  const waits = new Set<() => void>();
  const changed = () => {
    for (const wait of waits) wait();
  };

  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, response) => {
    const { pathname: path } = new URL(incoming.url ?? "/", "http://any");
    const request: MediaRequest = {
      path,
      nth: requests.filter((earlier) => earlier.path === path).length,
      headers: incoming.headers,
      atMs: performance.now(),
      status: 0,
      sent: 0,
      isOver: false,
    };
    requests.push(request);
    response.once("close", () => {
      request.isOver = true;
      changed();
    });
    void answer(request, response, media.get(path), changed);
    changed();
  });
  const port = await listen(server);

  return {
    requests,
    url: (path, host = "127.0.0.1") => new URL(`http://${host}:${port}${path}`),
    serve(path, body, faults = {}) {
      media.set(path, { body: Buffer.from(body), faults });
    },
    bytesSent(path) {
      const counted = requests.filter((request) => path === undefined || request.path === path);
      return counted.reduce((sum, { sent }) => sum + sent, 0);
    },
    async waitFor(isSo) {
      if (isSo()) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const check = () => {
        if (isSo()) resolve();
      };
      waits.add(check);
      await promise;
      waits.delete(check);
    },
    async close() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function answer(
  request: MediaRequest,
  response: ServerResponse,
  served: Served | undefined,
  onSent: () => void,
): Promise<void> {
  const { body, faults } = served ?? { body: Buffer.alloc(0), faults: { status: 404 } };
  const fault = typeof faults === "function" ? faults(request) : faults;
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
