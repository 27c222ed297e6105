import { pipeline, Readable } from "node:stream";
import { callbackify, promisify } from "node:util";
import { createGzip, gzip, gzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Shares } from "../../async/shares.ts";
import { gzipTagOf } from "./etag.ts";
import { problemMediaType } from "./problem.ts";
import { untilClosed } from "./turns.ts";

/** Shorter JSON, bytes, gains nothing. */
const minBytes = 1024;

/** Longer text, UTF-16 units, is compressed in Node's thread pool; for shorter text the pool costs more than the work. */
const maxSyncLength = 16 * 1024;

/**
 * Texts that the pool compresses at a time, and one more of an owner that has none while another has several. The pool has more threads than
 * the machine has processors: if all of them compress, the event loop hardly runs.
 */
const maxInPool = 2;

const gzipInPool = promisify<string, Buffer>(gzip);

/**
 * Compresses JSON over 1 KiB with gzip for clients that accept it (RFC 9110 §12.5.3), and shorter JSON for those that
 * refuse `identity`. The compressed representation has an entity tag of its own (§8.8.3). Files, event streams and
 * everything else that is not JSON stays as it is. No response has a secret that its length could reveal (BREACH).
 */
export function compressJson(app: FastifyInstance): void {
  // Not @fastify/compress: it leaves the entity tag as it is, sets `Vary` only if it compresses, and compresses by route.
  const places = new Shares(maxInPool, "spare");
  app.addHook("onSend", (request, reply, payload, done) => {
    const isText = typeof payload === "string";
    if ((!isText && !(payload instanceof Readable)) || !isJson(reply)) return done(null, payload);
    reply.header("vary", "accept-encoding");
    const accepted = request.headers["accept-encoding"];
    if (accepted === undefined || !isGzipBest(request, accepted, isText ? payload : undefined)) {
      return done(null, payload);
    }
    reply.header("content-encoding", "gzip");
    const etag = reply.getHeader("etag");
    if (typeof etag === "string") reply.header("etag", gzipTagOf(etag));
    if (!isText) return done(null, gzipped(payload));
    if (payload.length <= maxSyncLength) return done(null, gzipSync(payload));
    const compress = () => places.run(request.sharer, untilClosed(reply), () => gzipInPool(payload));
    return callbackify(compress)(done);
  });
}

/**
 * Returns the payload compressed; if either stream fails, so does the returned one. What `compose` of Node returns cannot be
 * destroyed once the payload has ended: no code could handle the error that this causes.
 */
function gzipped(payload: Readable): Readable {
  return pipeline(payload, createGzip(), () => undefined);
}

function isJson(reply: FastifyReply): boolean {
  const type = String(reply.getHeader("content-type"));
  return type.startsWith("application/json") || type.startsWith(problemMediaType);
}

/** @param payload Undefined: a stream, which is long. */
function isGzipBest(request: FastifyRequest, accepted: string, payload: string | undefined): boolean {
  const isLong = payload === undefined || payload.length > minBytes || Buffer.byteLength(payload) > minBytes;
  // Most clients refuse nothing.
  if (!isLong && !accepted.includes("q=0")) return false;
  const accepts = request.accepts();
  if (isLong) return accepts.encoding(["gzip", "identity"]) === "gzip";
  return accepts.encoding(["identity"]) === false && accepts.encoding(["gzip"]) === "gzip";
}
