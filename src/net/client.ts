import type { ByteRange } from "./byte-range.ts";

/** What the rest of the program sees of the network. */
export interface HttpClient {
  /**
   * GETs `url`, following at most 5 redirects, every hop through the guard. A step from https to
   * http is followed.
   *
   * The promise resolves at the final answer's headers if its status is 2xx; `body` then streams the
   * decoded bytes (gzip, deflate, br, zstd undone) and must be read to its end or left with
   * `break`/`return()`, which closes the connection.
   *
   * The promise, or the iteration of `body`, rejects with a ServiceError:
   * `invalid_url` (not http/https, credentials in it, over 8 KiB), `address_blocked` (a hop resolves to
   * an address that is not public and not in ALLOW_NETWORKS), `upstream_unreachable` (DNS, TCP,
   * TLS, connection lost), `upstream_status` (not 2xx, with `upstreamStatus`; `retryable` for 408, 425, 429 and 5xx,
   * with `retryAfterS` where stated), `upstream_invalid` (protocol, encoding, a redirect to what would be
   * an `invalid_url`, too many of them, more than `maxBytes`), `upstream_timeout` (no bytes for the
   * idle time, or the total time over all), `unavailable` (the client is closed).
   * When `signal` is aborted: with `signal.reason`.
   */
  get(url: URL, options: GetOptions): Promise<HttpResponse>;
  /** Closes all sockets; safe to call twice. */
  close(): Promise<void>;
}

export interface GetOptions {
  signal: AbortSignal;
  /** Limit of the decoded body, bytes. */
  maxBytes: number;
  /** Value of the `Accept` header; default any type. */
  accept?: string;
  /**
   * Asks for the bytes as they are kept, without a content coding, so that offsets mean the same in
   * every answer. A server that sends a coding all the same is refused with `upstream_invalid`.
   */
  identity?: boolean;
  /**
   * Asks for these bytes only (RFC 9110 §14.2); `identity` is then true. The server may ignore it:
   * the answer is 206 with `Content-Range`, or 200 with everything. A 206 that begins elsewhere, ends
   * later, holds several ranges, or was not asked for is refused with `upstream_invalid`; one that
   * ends earlier is not.
   */
  range?: ByteRange;
  /** With `range`: the validator that must still hold, else everything is sent (RFC 9110 §13.1.5). */
  ifRange?: string;
}

export interface HttpResponse {
  /** Address of the final answer, after redirects. */
  url: URL;
  status: number;
  /** Names in lower case; repeated ones joined by ", ". */
  headers: ReadonlyMap<string, string>;
  body: AsyncIterable<Uint8Array>;
  /**
   * Gives the memory of a chunk of `body` back, to be read into again. A caller who does may not look
   * at the chunk any more; one who does not leaves it to the garbage collector.
   */
  release(chunk: Uint8Array): void;
}
