import packageJson from "../../package.json" with { type: "json" };
import { Agent } from "undici";
import { ServiceError } from "../errors.ts";
import { createAddressGuard, type Lookup } from "./address-guard.ts";
import { createResponseBody } from "./response-body.ts";
import { checkPartial } from "./byte-range.ts";
import type { GetOptions, HttpResponse, HttpClient } from "./client.ts";
import { decode, decodersOf } from "./content-coding.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { discard, type Exchange, exchange } from "./exchange.ts";
import { createGuardedConnector } from "./guarded-connector.ts";
import { createHostSlots } from "./host-slots.ts";
import { httpUrlProblem, urlForMessage } from "./http-url.ts";
import { afterRedirects, isRedirect, redirectTarget } from "./redirect.ts";
import { requestFields } from "./request-fields.ts";
import { createReadBufferPool, type ReadBufferPool } from "./read-buffer-pool.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { type UpstreamLimits, toUpstreamError } from "./upstream-error.ts";

export interface HttpClientOptions {
  /**
   * Networks in CIDR notation that may be fetched although they are not public, as a list or as one
   * text with commas between them; default none.
   */
  allowNetworks?: string | readonly string[];
  /** Default: the system's resolver. */
  lookup?: Lookup;
  /** Requests at a time to one host and port (`URL.host`); default 4. */
  perHost?: number;
  /**
   * Longest wait for a lookup, a connection, an answer's header, or more bytes, kept to about a
   * second; default 10 s.
   */
  idleTimeoutMs?: number;
  /** From the call of `get` to the end of the body, all waiting included; Infinity: no limit. Default 15 s. */
  totalTimeoutMs?: number;
  /** Largest header of an answer; default 32 KiB. */
  maxHeaderBytes?: number;
  /** Redirects that one `get` follows; default 5. */
  maxRedirects?: number;
  userAgent?: string;
}

/**
 * A client whose every connection goes through the address guard. It sends `User-Agent`, `Accept`
 * and `Accept-Encoding`, `Range` and `If-Range` where asked for, nothing of anyone's request and no
 * cookies, over HTTP/1.1 connections that are kept for a few seconds.
 *
 * @throws RangeError that names a text in `allowNetworks` that is no network.
 */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  const { perHost = 4, totalTimeoutMs = 15_000, maxRedirects = 5, lookup } = options;
  const { idleTimeoutMs = 10_000, maxHeaderBytes = 32 * 1024 } = options;
  const { userAgent = `Mozilla/5.0 (compatible; Unreel/${packageJson.version})` } = options;
  const guard = createAddressGuard({
    allowNetworks: networkList(options.allowNetworks),
    lookupTimeoutMs: idleTimeoutMs,
    ...(lookup !== undefined && { lookup }),
  });
  const memory = createReadBufferPool();
  const agent = new Agent({
    connect: createGuardedConnector(guard, idleTimeoutMs, memory),
    allowH2: false,
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    maxHeaderSize: maxHeaderBytes,
  });
  const parts = { agent, slots: createHostSlots(perHost) };
  const limits = { idleTimeoutMs, maxHeaderBytes };

  return {
    async get(start, request) {
      const { signal } = request;
      signal.throwIfAborted();
      const fault = httpUrlProblem(start);
      if (fault !== undefined) throw fault;
      const fields = requestFields(request, userAgent, whatOf(start));
      const deadline = startDeadline(signal, totalTimeoutMs, whatOf(start));
      let url = start;
      let redirects = 0;
      try {
        for (;;) {
          const received = await exchange(url, fields, deadline, parts);
          if (!isRedirect(received.status)) {
            return await openAnswer(received, request, deadline, limits, memory);
          }
          await discard(received.body);
          if (redirects === maxRedirects) throw tooManyRedirects(url, maxRedirects);
          url = redirectTarget(url, received.headers.get("location"));
          redirects += 1;
        }
      } catch (error) {
        deadline.end();
        if (deadline.signal.aborted) throw deadline.reason;
        const failure = toUpstreamError(error, whatOf(url), limits);
        throw redirects > 0 ? afterRedirects(failure, start, redirects) : failure;
      }
    },

    close: () => agent.destroy(),
  };
}

function networkList(networks: string | readonly string[] = []): string[] {
  return [networks]
    .flat()
    .flatMap((list) => list.split(","))
    .map((network) => network.trim())
    .filter((network) => network !== "");
}

async function openAnswer(
  { url, status, headers, body }: Exchange,
  { maxBytes, identity, range }: GetOptions,
  deadline: Deadline,
  limits: UpstreamLimits,
  memory: ReadBufferPool,
): Promise<HttpResponse> {
  const what = whatOf(url);
  try {
    if (status < 200 || status > 299) throw refused(what, status, headers.get("retry-after"));
    checkPartial({ status, headers }, range, what);
    const isEmpty = headers.get("content-length") === "0";
    const decoders = isEmpty ? [] : decodersOf(headers.get("content-encoding"), what);
    if (decoders.length > 0 && (identity === true || range !== undefined)) throw encoded(what);
    const answerBody = createResponseBody({
      raw: body,
      decoding: decode(body, decoders, maxBytes, what),
      maxBytes,
      deadline,
      what,
      translate: (error) =>
        deadline.signal.aborted ? deadline.reason : toUpstreamError(error, what, limits),
    });
    return { url, status, headers, body: answerBody, release: memory.release };
  } catch (error) {
    await discard(body);
    throw error;
  }
}

const whatOf = (url: URL): string => `GET ${urlForMessage(url)}`;

/** What may be over soon is worth another try (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4). */
const passing: ReadonlySet<number> = new Set([408, 425, 429]);

function refused(what: string, status: number, retryAfter: string | undefined): ServiceError {
  const retryAfterS = parseRetryAfter(retryAfter, new Date());
  return new ServiceError("upstream_status", `${what} was answered with status ${status}`, {
    upstreamStatus: status,
    retryable: passing.has(status) || status >= 500,
    ...(retryAfterS !== undefined && { retryAfterS }),
  });
}

function encoded(what: string): ServiceError {
  const rule = "identity was requested, but the response has a content coding";
  return new ServiceError("upstream_invalid", `${what}: ${rule}`);
}

function tooManyRedirects(url: URL, maxRedirects: number): ServiceError {
  const rule = `is redirected again, and at most ${maxRedirects} redirects are followed`;
  return new ServiceError("upstream_invalid", `${whatOf(url)} ${rule}`);
}
