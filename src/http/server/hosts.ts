import { isIP } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { shorten } from "../../net/http-url.ts";
import type { Origins } from "./origins.ts";
import { countLines, secretOfBearer } from "./header-fields.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whether the route's GET does more than to read what is stored, so that web pages of other sites may not make it. */
    startsWork?: boolean;
  }
}

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/**
 * Refuses requests that web pages of other sites make, so that they cannot use a service which only its
 * owner can reach. Requests fail with ServiceError
 *
 * - `invalid_request` if `Host` is missing, repeated or invalid, or the target is neither a path nor an http URL (RFC 9112 §3.2);
 * - `misdirected_request` if it is a name that public DNS could resolve to this service (DNS rebinding) and
 *   is not in `allowedHosts`: IP addresses and names of local networks always pass, any port does. The same holds for the
 *   host that a reverse proxy was asked for, which then is the request's own;
 * - `cross_site` if the method is unsafe (RFC 9110 §9.2.1) or the route starts work, and the browser says that another site makes the
 *   request: by `Sec-Fetch-Site: cross-site`, by `same-site` without `Origin`, or by an `Origin` that is neither the request's own
 *   host nor in `allowedHosts`; without both fields, as for images of pages without TLS, by such a `Referer`. Clients other than
 *   browsers send none of these. Requests with a key in `Authorization` pass: a page that could send the key would have it.
 *   Those of `origins` pass, too.
 */
export function checkHosts(app: FastifyInstance, allowedHosts: ReadonlySet<string>, origins: Origins): void {
  /** The last one that passed: most requests are for the same host. */
  let known: Authority | undefined;
  app.addHook("onRequest", (request, _reply, done) => {
    const authority = authorityOf(request, known);
    if (authority instanceof ServiceError) return done(authority);
    if (authority !== undefined && authority !== known && !isOwnName(authority.name, allowedHosts)) {
      return done(misdirectedError(authority.text));
    }
    known = authority;
    const { host } = request.contact;
    const forwarded = host === undefined ? undefined : parseAuthority(host);
    if (forwarded !== undefined && !isOwnName(forwarded.name, allowedHosts))
      return done(misdirectedError(forwarded.text));
    if (safeMethods.has(request.method) && request.routeOptions.config.startsWork !== true) return done();
    const { origin } = request.headers;
    if (origin !== undefined && origins.has(origin)) return done();
    return done(findCrossSite(request, (forwarded ?? authority)?.text, allowedHosts));
  });
}

interface Authority {
  /** `host` or `host:port`, as the client wrote it. */
  text: string;
  /** In lower case, without port, brackets and trailing dot. */
  name: string;
}

/** Returns the host that the request is for; undefined if it is HTTP/1.0 and names none; else its fault. */
function authorityOf({ raw, url }: FastifyRequest, known: Authority | undefined): Authority | ServiceError | undefined {
  const { host } = raw.headers;
  if (host === undefined) {
    return raw.httpVersion === "1.0" ? undefined : hostError("is required (RFC 9112 section 3.2)");
  }
  const lines = countLines(raw.rawHeaders, "host");
  if (lines > 1) return hostError(`must be given once, got ${lines} lines`);
  const parsed = host === known?.text ? known : parseAuthority(host);
  if (parsed === undefined) return invalidHostError(host);
  if (url.startsWith("/")) return parsed;
  // The absolute form of a request's target, whose host counts (RFC 9112 §3.2.2).
  const [, target] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (target === undefined) return targetError(url);
  return parseAuthority(target) ?? invalidHostError(target);
}

/** Parses `uri-host [":" port]` (RFC 9110 §7.2), with a host that is not empty. */
function parseAuthority(text: string): Authority | undefined {
  const pattern = /^(?:\[([^\]]*)\]|((?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})+))(?::\d*)?$/i;
  const [match, address, name] = pattern.exec(text) ?? [];
  if (match === undefined || (address !== undefined && !isValidIPv6(address))) return undefined;
  return { text, name: address ?? withoutDot((name ?? "").toLowerCase()) };
}

function isValidIPv6(text: string): boolean {
  return isIP(text) === 6 && !text.includes("%");
}

function withoutDot(name: string): string {
  return name.replace(/\.$/, "");
}

/** Single labels, and domains that public DNS never has: RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`. */
const localName = /^(?:[\w-]+|(?:[\w-]+\.)*(?:localhost|local|lan|home\.arpa|internal))$/;

function isOwnName(name: string, allowed: ReadonlySet<string>): boolean {
  return isIP(name) !== 0 || localName.test(name) || allowed.has(name);
}

/** `none`: the person at the browser makes the request. */
const ownSites: ReadonlySet<string> = new Set(["same-origin", "none"]);

function findCrossSite(
  { headers, method }: FastifyRequest,
  own: string | undefined,
  allowed: ReadonlySet<string>,
): ServiceError | undefined {
  const { origin, referer, "sec-fetch-site": site } = headers;
  if (secretOfBearer(headers) !== undefined) return undefined;
  if (site !== undefined && !ownSites.has(site) && (site !== "same-site" || origin === undefined)) {
    return crossSiteError(method, `Sec-Fetch-Site: ${shorten(site, 100)}`);
  }
  if (origin !== undefined) {
    return isOwnOrigin(origin, own, allowed) ? undefined : crossSiteError(method, `Origin: ${shorten(origin, 100)}`);
  }
  if (site !== undefined || referer === undefined || isOwnOrigin(referer, own, allowed)) return undefined;
  return crossSiteError(method, `Referer: ${shorten(referer, 100)}`);
}

/** The scheme does not count, as a reverse proxy may add TLS; the scheme's default port does. */
function isOwnOrigin(origin: string, own: string | undefined, allowed: ReadonlySet<string>) {
  const url = URL.parse(origin);
  if (url === null || !/^https?:$/.test(url.protocol)) return false;
  if (allowed.has(withoutDot(url.hostname))) return true;
  return own !== undefined && URL.parse(`${url.protocol}//${own}`)?.host === url.host;
}

function hostError(rule: string): ServiceError {
  return new ServiceError("invalid_request", `the header Host ${rule}`);
}

function targetError(url: string): ServiceError {
  const got = JSON.stringify(shorten(url, 100));
  return new ServiceError("invalid_request", `the request's target must be a path or an http URL, got ${got}`);
}

function invalidHostError(text: string): ServiceError {
  return hostError(`must be a host with an optional port, got ${JSON.stringify(shorten(text, 100))}`);
}

function misdirectedError(text: string): ServiceError {
  return new ServiceError(
    "misdirected_request",
    `the service does not respond for the host ${shorten(text, 100)}: IP addresses and local names ` +
      "always work, ALLOWED_HOSTS can add others",
  );
}

function crossSiteError(method: string, got: string): ServiceError {
  return new ServiceError(
    "cross_site",
    `web pages of other sites may not send ${method} requests to this service, got ${got}; ` +
      "if the page belongs to this service, add its host to ALLOWED_HOSTS, else its origin to ALLOWED_ORIGINS",
  );
}
