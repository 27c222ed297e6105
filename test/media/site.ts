import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Resource, Resources } from "./resources.ts";
import { listen } from "../net/listen.ts";

/** A well-behaved media server on 127.0.0.1, whose answers can be taken over one by one. */
export interface Site extends AsyncDisposable {
  /** Address of a path that is given without its first slash. */
  url(path: string): string;
  /** What it has; may be changed at any time. */
  resources: Resources;
  /** Every request so far. */
  asked: Asked[];
  /** Bytes of bodies that were written so far. */
  sent: number;
  /** Speed of each response; may be changed at any time. */
  bytesPerSecond: number;
  /** From now on `answer` answers for `path`; it may leave it to `serve`. */
  answer(path: string, answer: Answer): void;
  /** Whether a request gets what it asks for, else 403; may be changed at any time. */
  accepts: (request: IncomingMessage) => boolean;
  /** Resolves once `holds`; looked at after each request, after each piece of a body, and when `look` is called. */
  until(holds: () => boolean): Promise<void>;
  look(): void;
  close(): Promise<void>;
}

export interface Asked {
  path: string;
  headers: IncomingHttpHeaders;
  range: string | undefined;
}

export type Answer = (response: ServerResponse, serve: () => Promise<void>, request: IncomingMessage) => unknown;

export interface SiteOptions {
  /** Bytes a second of each answer; default as fast as it goes. */
  bytesPerSecond?: number;
}

/** Serves `resources` with single ranges (RFC 9110 §14), strong ETags and If-Range. */
export async function startSite(resources: Resources, { bytesPerSecond = Infinity }: SiteOptions = {}): Promise<Site> {
  const answers = new Map<string, Answer>();
  const waiting = new Set<() => void>();
  const look = () => {
    for (const check of waiting) check();
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const path = decodeURIComponent((request.url ?? "").slice(1).replace(/\?.*/, ""));
    const { headers } = request;
    site.asked.push({ path, headers, range: headers.range });
    const refuse = () => response.writeHead(403).end();
    const serve = () => send(site.resources.get(path), request, response);
    response.on("error", () => {});
    const answer = site.accepts(request) ? (answers.get(path) ?? serve) : refuse;
    void answer(response, serve, request);
    look();
  });

  async function send(found: Resource | undefined, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (found === undefined) return void response.writeHead(404).end();
    const { status, headers, body } = answerTo(request, found);
    response.writeHead(status, headers);
    for (let at = 0; at < body.length && !response.destroyed;) {
      const step = Math.max(1, Math.min(site.bytesPerSecond / 20, 1 << 20));
      const piece = body.subarray(at, at + step);
      at += piece.length;
      if (site.bytesPerSecond !== Infinity) await wait(50);
      if (!response.write(piece)) await drained(response);
      site.sent += piece.length;
      look();
    }
    response.end();
  }

  const port = await listen(server);
  const site: Site = {
    url: (path) => `http://127.0.0.1:${port}/${path}`,
    resources,
    asked: [],
    sent: 0,
    bytesPerSecond,
    accepts: () => true,
    answer: (path, answer) => void answers.set(path, answer),
    look,
    until(holds) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const check = () => {
        if (!holds()) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
      return promise;
    },
    async close() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
    [Symbol.asyncDispose]: () => site.close(),
  };
  return site;
}

function answerTo({ headers: asked }: IncomingMessage, { type, body, ...stated }: Resource) {
  const etag = stated.etag ?? `"${createHash("sha1").update(body).digest("hex")}"`;
  const headers = { "content-type": type, ...(etag !== "" && { etag }), "accept-ranges": "bytes" };
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(asked.range ?? "") ?? [];
  const isWhole = first === undefined || (asked["if-range"] ?? etag) !== etag;
  if (isWhole) return { status: 200, headers: { ...headers, "content-length": body.length }, body };
  const begin = Number(first);
  const end = Math.min(last ? Number(last) + 1 : body.length, body.length);
  if (begin >= end) {
    const range = { "content-range": `bytes */${body.length}` };
    return { status: 416, headers: { ...headers, ...range }, body: Buffer.alloc(0) };
  }
  const range = { "content-range": `bytes ${begin}-${end - 1}/${body.length}` };
  const part = body.subarray(begin, end);
  return {
    status: 206,
    headers: { ...headers, ...range, "content-length": part.length },
    body: part,
  };
}

/** Resolves once more can be written, or never will. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  response.once("drain", done).once("close", done);
  await promise;
  response.off("drain", done).off("close", done);
}
