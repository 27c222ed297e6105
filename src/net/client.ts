import type { ByteRange } from "./byte-range.ts";
import type { CookieJar } from "./cookies.ts";

/** The guarded HTTP client; all outgoing requests use it. */
export interface HttpClient {
  /**
   * GETs `url` and follows at most 5 redirects, also from https to http. The guard checks every hop.
   *
   * Resolves with the head of the final response if its status is 2xx. `body` then streams the bytes,
   * decoded (gzip, deflate, br, zstd); read it to its end, or leave it with `break` or `return()`, which
   * closes the connection.
   *
   * The promise, or the iteration of `body`, rejects with `signal.reason` when `signal` is aborted, else
   * with a ServiceError:
   * - `invalid_url`: not http or https, with credentials, or over 8 KiB
   * - `address_blocked`: a hop's address is neither public nor in ALLOW_NETWORKS
   * - `upstream_unreachable`: DNS, TCP or TLS failed, or the connection was lost; not retryable for a
   *   name that does not exist
   * - `upstream_status`: not 2xx, with `upstreamStatus`; `retryable` for 408, 425, 429 and 5xx, with
   *   `retryAfterS` if the response has it; with `isUntried` if nothing was sent because the host has asked for a pause
   *   (429 or 503 with `Retry-After`) that is not over
   * - `upstream_invalid`: a fault of protocol or content coding, too many redirects, a redirect to an
   *   invalid URL, or more than `maxBytes`
   * - `upstream_timeout`: no bytes for the idle time, fewer than the least speed demands, or the total
   *   time is over
   * - `unavailable`: the client is closed
   */
  get(url: URL, options: GetOptions): Promise<HttpResponse>;
  /** Closes all sockets; safe to call twice. */
  close(): Promise<void>;
}

export interface GetOptions {
  signal: AbortSignal;
  /** For whom: the slots of a host are shared by owners; default one for all. */
  owner?: string | undefined;
  /** Limit of the decoded body, bytes. */
  maxBytes: number;
  /** Value of the `Accept` field; default any type. */
  accept?: string;
  /** Called for each hop: further header fields of its request. */
  headers?: HeadersFor;
  /**
   * Each hop sends the jar's cookies, in place of those of the same names in `headers`, and adds those that its response sets. Default: no
   * cookies.
   */
  cookies?: CookieJar;
  /**
   * Accepts no content coding, so that offsets mean the same in every response. A whole response that has one
   * nevertheless is decoded, and comes without the fields of its coded form: length, ranges and validators. A 206
   * that has one fails with `upstream_invalid`.
   */
  identity?: boolean;
  /**
   * Requests these bytes only (RFC 9110 §14.2), with `identity`. The response is 206 with
   * `Content-Range`, which may end earlier or later, or 200 with everything. A 206 that starts elsewhere,
   * has several ranges, or was not requested fails with `upstream_invalid`, and so does a 200 whose `Content-Range` states a part.
   */
  range?: ByteRange;
  /** With `range`: the validator; if it no longer matches, everything is sent (RFC 9110 §13.1.5). */
  ifRange?: string;
  /** The request is optional: if the response asks for a pause, the host is not paused. */
  isExtra?: boolean;
}

/**
 * Returns header fields of a request for `url`, by name in lower case: never a field of the connection,
 * `Host`, `Accept-Encoding`, `Range` or `If-Range`. They replace the client's own.
 */
export type HeadersFor = (url: URL) => Readonly<Record<string, string>>;

export interface HttpResponse {
  /** URL of the final response, after redirects. */
  url: URL;
  status: number;
  /** By name in lower case; the values of one name are joined with ", ". */
  headers: ReadonlyMap<string, string>;
  body: AsyncIterable<Uint8Array>;
  /**
   * Returns the memory of a chunk of `body` to the client for later reads. Optional. Chunks are to be released in order: the
   * caller must not use the chunk afterwards, nor those that came with it in one read.
   */
  release(chunk: Uint8Array): void;
}
