import type { FastifyInstance, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** A page of another origin, which is allowed to, makes the request: the cookie of a session does not count. */
    isFromAllowedOrigin: boolean;
  }
}

/** The origins of web pages and browser extensions that may call the service. */
export interface Origins {
  readonly isEmpty: boolean;
  has(origin: string): boolean;
}

const exposed =
  "Accept-Ranges, Age, Location, ETag, Content-Disposition, Content-Location, Content-Range, Link, " +
  "Preference-Applied, RateLimit, RateLimit-Policy, Repr-Digest, Retry-After, X-Request-Id";

const requestHeaders =
  "Authorization, Cache-Control, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, " +
  "Last-Event-ID, Prefer, Range, traceparent, tracestate, X-Request-Id";

const preflightSeconds = 7_200;

/**
 * Lets pages of these origins read the responses (CORS, WHATWG Fetch §3.2), never with the cookie of a session. Nothing
 * changes for all others. Call it before what refuses requests, which such pages may read, and what asks for a key: a preflight has none.
 */
export function allowOrigins(app: FastifyInstance, origins: Origins): void {
  app.decorateRequest("isFromAllowedOrigin", false);
  if (origins.isEmpty) return;
  app.addHook("onRequest", (request, reply, done) => {
    const { origin, "sec-fetch-site": site } = request.headers;
    if (origin === undefined || !origins.has(origin)) return done();
    request.isFromAllowedOrigin = site !== "same-origin";
    if (request.isFromAllowedOrigin) reply.headers(readableBy(origin));
    if (!isPreflight(request)) return done();
    reply.headers({
      "access-control-allow-methods": "GET, HEAD, POST, DELETE",
      "access-control-allow-headers": requestHeaders,
      "access-control-max-age": preflightSeconds,
    });
    const wantsPrivate = request.headers["access-control-request-private-network"] === "true";
    if (wantsPrivate) reply.header("access-control-allow-private-network", "true");
    return void reply.code(204).send();
  });
  // After all others, which set the field too.
  app.addHook("onSend", (_request, reply, payload, done) => {
    const vary = reply.getHeader("vary");
    reply.header("vary", typeof vary === "string" ? `${vary}, origin` : "origin");
    done(null, payload);
  });
}

/**
 * Returns the header fields with which a page of this origin, if it is allowed to, may read a response that is sent before hooks run, or
 * without them; and `Vary`. Every page may read it if the origin is `null`, unknown: do so only for a text that is the same for all requests.
 */
export function earlyCorsHeaders(origins: Origins, origin: string | null | undefined): Record<string, string> {
  if (origins.isEmpty) return {};
  if (origin === null) return { vary: "origin", ...readableBy("*") };
  const isAllowed = origin !== undefined && origins.has(origin);
  return { vary: "origin", ...(isAllowed && readableBy(origin)) };
}

function readableBy(origin: string): Record<string, string> {
  return { "access-control-allow-origin": origin, "access-control-expose-headers": exposed };
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}
