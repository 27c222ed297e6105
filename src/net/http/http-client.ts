import { isPauseStatus, ServiceError } from "../../model/errors.ts";
import type { HostPause } from "../../model/url-parts.ts";
import { AddressGuard, type BlockObserver, type Lookup } from "../addresses/address-guard.ts";
import { checkPartial, parseUnsatisfiedRange } from "../byte-range.ts";
import type { GetOptions, HttpClient, HttpResponse } from "../client.ts";
import { createCookieJar } from "../cookies.ts";
import { decode, readCoding } from "./content-coding.ts";
import { type Deadline, startDeadline } from "../../async/deadline.ts";
import { Shares } from "../../async/shares.ts";
import { createHostSlots, discard, type Exchange, exchange, requestFields } from "./exchange.ts";
import { guardedOptions } from "../addresses/guarded-connector.ts";
import { createHostPools } from "./host-pools.ts";
import { HostPauses } from "../host-pauses.ts";
import { findUrlProblem, urlForMessage } from "../http-url.ts";
import { createResponseBody, type MinSpeed } from "./response-body.ts";
import { createReadBufferPool, type ReadBufferPool } from "./read-buffer-pool.ts";
import { invalidResponseError, isRetryableStatus, parseRetryAfter, toUpstreamError } from "../upstream-error.ts";

/** A client that also says, without a request, what its guard blocks. */
export interface GuardedClient extends HttpClient, Pick<AddressGuard, "findHostProblem"> {}

export interface HttpClientOptions {
  /** As in `AddressGuardOptions`. */
  allowNetworks?: readonly string[];
  /** Default: the system's resolver. */
  lookup?: Lookup;
  /** Concurrent requests per host and port (`URL.host`), in turn for each owner; default 4. */
  perHost?: number;
  /** The hosts that are left alone for a while, to which the client adds those that ask for it; default: none yet. */
  pauses?: HostPauses | undefined;
  /** A request waits for the end of such a pause if that is so near, else it fails; default 1 s. */
  maxPauseMs?: number;
  /**
   * Longest wait for a lookup (at most 8 s), a connection, a response's header, or the next bytes;
   * accurate to about a second; default 10 s.
   */
  idleTimeoutMs?: number;
  /** Longest time from the call of `get` to the end of the body; Infinity: no limit. Default 15 s. */
  totalTimeoutMs?: number;
  /**
   * Least speed of a body, bytes per second averaged over `speedWindowMs`, not counting the time that the
   * reader takes; a slower one fails with `upstream_timeout`. Default 0: any.
   */
  minSpeedBps?: number;
  /** Default 60 s. */
  speedWindowMs?: number;
  /**
   * Most bytes that are read from a socket at a time. Default 256 KiB, usually more than its receive buffer
   * contains: fast. Fewer take less of the event loop at a time if they are many tiny chunks.
   */
  readBytes?: number;
  /** As in `AddressGuardOptions`. */
  onBlocked?: BlockObserver | undefined;
}

/** Longest wait for a lookup: the system's resolver may take its 5 s to turn to a second server. */
export const maxLookupMs = 8_000;

/** Redirects that one `get` follows. */
const maxRedirects = 5;

/** Bodies that are decoded at a time whose coding takes much memory; it is not asked for. Others wait, in turn for each owner. */
const maxLargeCodings = 4;

/**
 * Creates a client that checks the address of every connection. It sends `User-Agent`, `Accept`,
 * `Accept-Encoding`, if asked for, `Range` and `If-Range`, and what a request's `headers` and `cookies` add; it stores
 * no cookies itself and sends no fields of a client's request. It uses HTTP/1.1 and keeps connections open for some seconds.
 *
 * @throws RangeError that names the first entry of `allowNetworks` that is not a network
 */
export function createHttpClient(options: HttpClientOptions = {}): GuardedClient {
  const { perHost = 4, idleTimeoutMs = 10_000, totalTimeoutMs = 15_000, lookup } = options;
  const { minSpeedBps = 0, speedWindowMs = 60_000 } = options;
  const guard = new AddressGuard({
    allowNetworks: options.allowNetworks,
    lookupTimeoutMs: Math.min(idleTimeoutMs, maxLookupMs),
    lookup,
    onBlocked: options.onBlocked,
  });
  const buffers = createReadBufferPool(options.readBytes ?? 256 * 1024);
  const pools = createHostPools(guardedOptions(guard, idleTimeoutMs, buffers));
  const { pauses = new HostPauses(), maxPauseMs = 1_000 } = options;
  const deps = { pools, slots: createHostSlots(perHost), pauses, maxPauseMs };
  const largeCodings = new Shares(maxLargeCodings, "spare");
  const limits = { largeCodings, idleTimeoutMs, minSpeed: { bytesPerS: minSpeedBps, windowMs: speedWindowMs } };

  return {
    async get(start, request) {
      const { signal } = request;
      signal.throwIfAborted();
      const problem = findUrlProblem(start);
      if (problem !== undefined) throw problem;
      const deadline = startDeadline(signal, totalTimeoutMs, describeGet(start));
      let url = start;
      let redirects = 0;
      try {
        for (;;) {
          const fields = requestFields(url, request, describeGet(start));
          const received = await exchange(url, fields, deadline, { ...deps, owner: request.owner });
          const pause = request.isExtra === true ? undefined : pauseOf(received);
          if (pause !== undefined) pauses.add(pause);
          request.cookies?.store(url, received.setCookie);
          if (!redirectStatuses.has(received.status)) {
            return await openResponse(received, request, deadline, limits, buffers);
          }
          await discard(received.body);
          if (redirects === maxRedirects) throw tooManyRedirectsError(url);
          url = redirectTarget(url, received.headers.get("location"));
          redirects += 1;
        }
      } catch (error) {
        deadline.end();
        deadline.signal.throwIfAborted();
        const failure = toUpstreamError(error, describeGet(url), idleTimeoutMs);
        throw redirects > 0 ? withRedirects(failure, start, redirects) : failure;
      }
    },

    findHostProblem: (hostname) => guard.findHostProblem(hostname),
    close: () => pools.destroy(),
  };
}

async function openResponse(
  { url, status, headers, body }: Exchange,
  { maxBytes, identity, range, owner = "" }: GetOptions,
  deadline: Deadline,
  { largeCodings, idleTimeoutMs, minSpeed }: { largeCodings: Shares; idleTimeoutMs: number; minSpeed: MinSpeed },
  buffers: ReadBufferPool,
): Promise<HttpResponse> {
  const what = describeGet(url);
  try {
    if (status < 200 || status > 299) throw statusError(what, status, headers);
    checkPartial({ status, headers }, range, what);
    const isEmpty = headers.get("content-length") === "0";
    const { decoders, isLarge } = readCoding(isEmpty ? undefined : headers.get("content-encoding"), what);
    const isUnwanted = decoders.length > 0 && (identity === true || range !== undefined);
    if (isUnwanted && status === 206) throw encodedError(what);
    const release = isLarge ? await largeCodings.wait(owner, deadline.signal) : () => {};
    const decoding = decode(body, decoders, maxBytes, what);
    decoding.decoded.once("close", release);
    const responseBody = createResponseBody({
      raw: body,
      decoding,
      maxBytes,
      minSpeed,
      deadline,
      what,
      toError: (error) =>
        deadline.signal.aborted ? deadline.signal.reason : toUpstreamError(error, what, idleTimeoutMs),
    });
    const fields = isUnwanted
      ? without(fieldsOfCodedForm, headers)
      : decoders.length > 0
        ? headers
        : without(coding, headers);
    return { url, status, headers: fields, body: responseBody, release: buffers.release };
  } catch (error) {
    await discard(body);
    throw error;
  }
}

const describeGet = (url: URL): string => `GET ${urlForMessage(url)}`;

function statusError(what: string, status: number, headers: ReadonlyMap<string, string>): ServiceError {
  return new ServiceError("upstream_status", `${what} failed with status ${status}`, {
    upstreamStatus: status,
    retryable: isRetryableStatus(status),
    retryAfterS: parseRetryAfter(headers.get("retry-after"), new Date()),
    resourceBytes: status === 416 ? parseUnsatisfiedRange(headers.get("content-range")) : undefined,
  });
}

function pauseOf({ url, status, headers }: Exchange): HostPause | undefined {
  if (!isPauseStatus(status)) return undefined;
  const seconds = parseRetryAfter(headers.get("retry-after"), new Date());
  return seconds === undefined ? undefined : { host: url.host, seconds };
}

function encodedError(what: string): ServiceError {
  const rule = "identity was requested, but the part that was sent has a content coding";
  return invalidResponseError(what, rule);
}

/** What is true of the coded bytes only (RFC 9110 §8.4): their length, ranges and validators. */
const fieldsOfCodedForm: ReadonlySet<string> = new Set(["content-length", "accept-ranges", "etag", "last-modified"]);

/** Left out of a response whose body has no coding, whatever the header names. */
const coding: ReadonlySet<string> = new Set(["content-encoding"]);

function without(names: ReadonlySet<string>, headers: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...headers].filter(([name]) => !names.has(name)));
}

function tooManyRedirectsError(url: URL): ServiceError {
  const rule = `redirects again; the limit is ${maxRedirects} redirects`;
  return new ServiceError("upstream_invalid", `${describeGet(url)} ${rule}`);
}

/** Returns a client whose requests also send the cookies that the responses of earlier ones have set, where they apply. Closing it closes `client`. */
export function withCookies(client: HttpClient): HttpClient {
  const cookies = createCookieJar();
  return { get: (url, options) => client.get(url, { cookies, ...options }), close: () => client.close() };
}

/** RFC 9110 §15.4. Of the others, 300 needs a user to choose, and 304 to 306 are not redirects. */
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Returns the target of a redirect of `from`: its `Location` (RFC 9110 §10.2.2), absolute or relative,
 * with the fragment of `from` unless it has its own. `location` has one character per byte (latin1).
 * Redirects from https to http are allowed: pages use them, and secrets are sent only where they
 * apply.
 *
 * @throws ServiceError `upstream_invalid` if it is missing, not a URL, or refused by `findUrlProblem`,
 *   whose error is then the `cause`
 */
function redirectTarget(from: URL, location: string | undefined): URL {
  if (location === undefined) throw redirectError(from, "has no Location");
  const target = URL.parse(Buffer.from(location, "latin1").toString("utf8"), from);
  if (target === null) throw redirectError(from, "has a Location that is not a URL");
  if (target.hash === "") target.hash = from.hash;
  const problem = findUrlProblem(target);
  if (problem !== undefined) throw redirectError(from, `is refused: ${problem.message}`, problem);
  return target;
}

/** Returns the error of a request after redirects, with their number and start before its message. */
function withRedirects(error: unknown, start: URL, redirects: number): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { code, message, retryable, retryAfterS, upstreamStatus, resourceBytes, isUntried } = error;
  return new ServiceError(code, `redirect ${redirects} of ${urlForMessage(start)}: ${message}`, {
    cause: error,
    retryable,
    retryAfterS,
    upstreamStatus,
    resourceBytes,
    isUntried,
  });
}

function redirectError(from: URL, why: string, cause?: unknown): ServiceError {
  return new ServiceError("upstream_invalid", `the redirect of ${urlForMessage(from)} ${why}`, { cause });
}
