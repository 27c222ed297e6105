import { setImmediate as immediate } from "node:timers/promises";
import packageJson from "../../../package.json" with { type: "json" };
import type { Dispatcher } from "undici";
import { type Deadline, untilAborted } from "../../async/deadline.ts";
import { rangeField } from "../byte-range.ts";
import type { GetOptions } from "../client.ts";
import { acceptEncoding } from "./content-coding.ts";
import type { HostPools } from "./host-pools.ts";
import type { HostPauses } from "../host-pauses.ts";
import { urlForMessage } from "../http-url.ts";
import { requestOwner } from "../addresses/guarded-connector.ts";
import { headError, limitInterimResponses, maxWaitingBytes } from "../response-framing.ts";
import { type Release, Shares } from "../../async/shares.ts";

/** One request and its response's head, of any status. */
export interface Exchange {
  url: URL;
  status: number;
  headers: ReadonlyMap<string, string>;
  /** The `Set-Cookie` fields, which cannot be joined (RFC 6265 §3). */
  setCookie: readonly string[];
  /** The bytes as sent, still encoded. The host's slot is taken until it is closed. */
  body: Dispatcher.ResponseData["body"];
}

interface ExchangeDeps {
  pools: HostPools;
  slots: HostSlots;
  /** For whom; default one for all. */
  owner?: string | undefined;
  /** Hosts that are left alone; default: none is. */
  pauses?: HostPauses;
  /** Longest wait for the end of a pause; default 0. */
  maxPauseMs?: number;
}

/**
 * Sends GET `url`, or `content`, once its host has a free slot and is not left alone. Rejects with undici's errors, and those of
 * `HostPauses`.
 */
export async function exchange(
  url: URL,
  fields: Record<string, string>,
  deadline: Deadline,
  { pools, slots, owner = "", pauses, maxPauseMs: maxWaitMs = 0 }: ExchangeDeps,
  content: { method: "GET" } | { method: "POST"; body: string } = { method: "GET" },
): Promise<Exchange> {
  const taken = new DisposableStack();
  taken.defer(await slots.acquire(url.host, owner, deadline.signal));
  const what = `${content.method} ${urlForMessage(url)}`;
  try {
    await pauses?.wait(url.host, { what, maxWaitMs, signal: deadline.signal });
    const options = {
      ...content,
      origin: url.origin,
      path: url.pathname + url.search,
      headers: fields,
      signal: deadline.signal,
      onInfo: limitInterimResponses(what),
      highWaterMark: maxWaitingBytes,
    };
    const { pool, release } = pools.take(url.origin);
    taken.defer(release);
    const sent = requestOwner.run(owner, () => pool.request(options));
    // Before it has a connection, undici ignores the signal.
    const response = await untilAborted(sent, deadline.signal);
    // undici reuses a connection only in the event loop's next iteration.
    response.body.once("close", () => setImmediate(() => taken.dispose())).on("error", () => {});
    const headers = Object.entries(response.headers).map(joinedLines);
    const setCookie = [response.headers["set-cookie"] ?? []].flat();
    const { statusCode: status, body } = response;
    return { url, status, headers: new Map(headers), setCookie, body };
  } catch (error) {
    taken.dispose();
    throw headError(error, what);
  }
}

/**
 * Reads and drops the rest of a body, so that the connection can be reused; closes the connection if
 * that is more than `limit` bytes, 64 KiB by default, or takes over 250 ms. Never rejects.
 */
export async function discard(body: Exchange["body"], limit = 64 * 1024): Promise<void> {
  await body.dump({ limit, signal: AbortSignal.timeout(250) }).catch(() => {});
  await immediate();
}

/** Joins the field lines of one name (RFC 9110 §5.3). */
function joinedLines([name, value = ""]: [string, string | string[] | undefined]) {
  return [name, Array.isArray(value) ? value.join(", ") : value] as const;
}

export const userAgent = `Mozilla/5.0 (compatible; Unreel/${packageJson.version})`;

/** Returns the header fields of the request for one hop; undici adds those of the connection. */
export function requestFields(
  url: URL,
  { accept = "*/*", headers, cookies, identity, range, ifRange }: GetOptions,
  what: string,
): Record<string, string> {
  const isIdentity = identity === true || range !== undefined;
  const own = headers?.(url);
  const cookie = joinCookies(own?.["cookie"], cookies?.fieldFor(url));
  const fields = {
    "user-agent": userAgent,
    accept,
    ...own,
    ...(cookie !== undefined && { cookie }),
    "accept-encoding": isIdentity ? "identity" : acceptEncoding,
  };
  if (range === undefined) return fields;
  const ranged = { ...fields, range: rangeField(range, what) };
  return ifRange === undefined ? ranged : { ...ranged, "if-range": ifRange };
}

/** Joins two `Cookie` fields (RFC 6265 §4.2.1); of one name, the cookie of the second one counts. */
function joinCookies(...fields: readonly (string | undefined)[]): string | undefined {
  const known = fields.filter((field) => field !== undefined);
  if (known.length < 2) return known[0];
  const pairs = known.flatMap((field) => field.split("; ")).map((pair) => [pair.split("=", 1)[0], pair] as const);
  return [...new Map(pairs).values()].join("; ");
}

export type HostSlots = ReturnType<typeof createHostSlots>;

/**
 * Limits the concurrent requests to each host to `perHost`; further ones wait. A free slot goes to the owner that has the fewest; an
 * owner that has none while another one has several may get one more.
 */
export function createHostSlots(perHost: number) {
  const hosts = new Map<string, Shares>();
  return {
    /** Number of hosts with a taken slot; others use no memory. */
    get size(): number {
      return hosts.size;
    },

    /**
     * Waits for a slot, in order of arrival among the calls of the owner. Returns the function that releases it, safe to
     * call twice. Rejects with `signal.reason` if `signal` is aborted first.
     */
    async acquire(host: string, owner: string, signal: AbortSignal): Promise<Release> {
      signal.throwIfAborted();
      const shares = hosts.getOrInsertComputed(host, () => new Shares(perHost, "spare"));
      const release = await shares.wait(owner, signal);
      return () => {
        release();
        if (shares.taken === 0 && hosts.get(host) === shares) hosts.delete(host);
      };
    },
  };
}
