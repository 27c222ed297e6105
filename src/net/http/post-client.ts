import { AddressGuard } from "../addresses/address-guard.ts";
import { startDeadline } from "../../async/deadline.ts";
import type { HttpResponse } from "../client.ts";
import { discard, exchange, userAgent, createHostSlots } from "./exchange.ts";
import { guardedOptions } from "../addresses/guarded-connector.ts";
import { createHostPools } from "./host-pools.ts";
import { findUrlProblem, urlForMessage } from "../http-url.ts";
import { toUpstreamError } from "../upstream-error.ts";

/** Sends POST requests. */
export interface PostClient {
  /**
   * POSTs `body` and resolves with the head of the response, whatever its status: redirects are not followed.
   * Of the response's body a few KiB are read, and dropped.
   *
   * Rejects with `signal.reason` when `signal` is aborted, else with a ServiceError: `invalid_url`,
   * `address_blocked`, `upstream_unreachable`, `upstream_invalid`, `upstream_timeout`, or `unavailable` if the
   * client is closed.
   */
  post(url: URL, request: PostRequest): Promise<PostResponse>;
  /** Closes all sockets; safe to call twice. */
  close(): Promise<void>;
}

interface PostRequest {
  /** Header fields, by name in lower case. */
  headers: Readonly<Record<string, string>>;
  body: string;
  signal: AbortSignal;
}

export type PostResponse = Pick<HttpResponse, "status" | "headers">;

export interface PostClientOptions {
  /** As in `AddressGuardOptions`. */
  allowNetworks: readonly string[];
  /** Concurrent requests per host and port; others wait. */
  perHost: number;
  /** Longest time from the call of `post` to the head of the response; default 15 s. */
  totalTimeoutMs?: number;
}

/** Every network: for URLs that the operator of the service has written. */
export const everyNetwork: readonly string[] = ["0.0.0.0/0", "::/0"];

/** Bytes of a response's body that are read, so that its connection can be used again. */
const maxBodyBytes = 4 * 1024;

/** Creates a client that checks the address of every connection, as the client for pages does. */
export function createPostClient(options: PostClientOptions): PostClient {
  const { perHost, totalTimeoutMs = 15_000 } = options;
  const guard = new AddressGuard({ allowNetworks: options.allowNetworks, lookupTimeoutMs: totalTimeoutMs });
  const pools = createHostPools(guardedOptions(guard, totalTimeoutMs, {}));
  const deps = { pools, slots: createHostSlots(perHost) };

  return {
    async post(url, { headers, body, signal }) {
      signal.throwIfAborted();
      const problem = findUrlProblem(url);
      if (problem !== undefined) throw problem;
      const what = `POST ${urlForMessage(url)}`;
      using deadline = startDeadline(signal, totalTimeoutMs, what);
      const fields = { "user-agent": userAgent, ...headers };
      try {
        const response = await exchange(url, fields, deadline, deps, { method: "POST", body });
        await discard(response.body, maxBodyBytes);
        return { status: response.status, headers: response.headers };
      } catch (error) {
        deadline.signal.throwIfAborted();
        throw toUpstreamError(error, what, totalTimeoutMs);
      }
    },
    close: () => pools.destroy(),
  };
}
