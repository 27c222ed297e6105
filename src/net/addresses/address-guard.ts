import type { LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { untilAborted } from "../../async/deadline.ts";
import { ServiceError, systemErrorCode } from "../../model/errors.ts";
import { type Networks, parseNetworks, specialClasses, specialClassOf, embeddedIPv4 } from "./addresses.ts";
import { shorten } from "../http-url.ts";
import { isLocalName } from "./not-public.ts";
import { lookup as systemLookup } from "node:dns/promises";
import { Shares } from "../../async/shares.ts";

interface AddressGuardOptions {
  /**
   * Networks in CIDR notation that may be fetched although they are not public; default none. What counts
   * of an IPv6 address that embeds an IPv4 address is the latter: an IPv4 network allows it, an IPv6
   * network (`::/0`) only if the IPv4 address is public.
   */
  allowNetworks?: readonly string[] | undefined;
  /** Default: the system's resolver. */
  lookup?: Lookup | undefined;
  /** Longest wait for a lookup, milliseconds. */
  lookupTimeoutMs: number;
  /** Called with one of `blockReasons` whenever something is blocked. */
  onBlocked?: BlockObserver | undefined;
}

export type BlockObserver = (reason: string) => void;

const localName = "local name";

/** Why a host may be blocked: the classes of addresses, or its name. */
export const blockReasons: readonly string[] = [...specialClasses, localName];

/** Decides which hosts may be connected to. */
export class AddressGuard {
  readonly #allowed: Networks;
  readonly #lookup: Lookup;
  readonly #lookupTimeoutMs: number;
  readonly #onBlocked: BlockObserver;

  /** @throws RangeError that names the first entry of `allowNetworks` that is not a network. */
  constructor({ allowNetworks = [], lookup, lookupTimeoutMs, onBlocked }: AddressGuardOptions) {
    this.#allowed = parseNetworks(allowNetworks);
    this.#lookup = lookup ?? lookUpBySystem;
    this.#lookupTimeoutMs = lookupTimeoutMs;
    this.#onBlocked = onBlocked ?? (() => {});
  }

  /**
   * Returns the addresses that may be connected to for `hostname`, a name or an IP address (IPv6 with or without
   * brackets). Looks a name up once, for `owner`, default one for all; one blocked address blocks the host.
   *
   * While `allowNetworks` is empty, local names (`localhost`, `*.internal`, …) are blocked without a lookup; else their
   * addresses decide, as for other names.
   *
   * @throws ServiceError `address_blocked`; `upstream_unreachable`, not retryable if the name does not exist or has no
   * address; `upstream_timeout`. `isLookupFailure` recognizes the last two.
   */
  async resolve(hostname: string, owner = ""): Promise<LookupAddress[]> {
    const blocked = this.findHostProblem(hostname);
    if (blocked !== undefined) throw blocked;
    const host = withoutBrackets(hostname);
    const isLiteral = isIP(host) !== 0;
    const found = isLiteral ? [host] : await findAddresses(this.#lookup, host, owner, this.#lookupTimeoutMs);
    for (const address of found) {
      const problem = this.findProblem(host, address);
      if (problem !== undefined) throw problem;
    }
    return found.map((address) => ({ address, family: isIP(address) }));
  }

  /**
   * Returns an `address_blocked` error if `hostname` is blocked as it stands, without a lookup: it is an IP address, or a
   * local name while `allowNetworks` is empty.
   */
  findHostProblem(hostname: string): ServiceError | undefined {
    const host = withoutBrackets(hostname);
    if (isIP(host) !== 0) return this.findProblem(host, host);
    if (this.#allowed.cidrs.length > 0 || !isLocalName(host)) return undefined;
    this.#onBlocked(localName);
    return blockedError(host, ", a name of local networks");
  }

  /** Returns an `address_blocked` error unless `address`, one of `host`, is public or allowed. */
  findProblem(host: string, address: string): ServiceError | undefined {
    if (this.#isAllowed(address)) return undefined;
    // ISATAP embeds an IPv4 address below a public prefix, too.
    const name = [address, ...embeddedIPv4(address)].map(specialClassOf).find((each) => each !== undefined);
    if (name === undefined) return undefined;
    this.#onBlocked(name);
    const what = host === address ? ` (${name})` : `, which resolves to ${address} (${name})`;
    return blockedError(host, what);
  }

  #isAllowed(address: string): boolean {
    const allowed = this.#allowed;
    const embedded = embeddedIPv4(address);
    if (embedded.length === 0) return allowed.has(address);
    return embedded.every((each) => allowed.has(each) || (allowed.has(address) && specialClassOf(each) === undefined));
  }
}

function withoutBrackets(hostname: string): string {
  return hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname;
}

async function findAddresses(lookup: Lookup, host: string, owner: string, timeoutMs: number) {
  const timeout = new AbortController();
  const expire = () => timeout.abort(lookupTimeoutError(host, timeoutMs));
  const timer = setTimeout(expire, timeoutMs).unref();
  const { signal } = timeout;
  try {
    const addresses = await untilAborted(lookup(host, { owner, signal }), signal);
    if (addresses.length > 0) return addresses.map(({ address }) => address);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const code = systemErrorCode(error);
    const reason = reasons.get(code) ?? "the lookup failed";
    throw lookupError(host, code === undefined ? reason : `${reason} (${code})`, code !== "ENOTFOUND", error);
  } finally {
    clearTimeout(timer);
  }
  throw lookupError(host, "it has no address", false);
}

/** What the codes of a lookup mean, for people. */
const reasons: ReadonlyMap<string | undefined, string> = new Map([
  ["ENOTFOUND", "there is no such name, or it has no address"],
  ["EAI_AGAIN", "no name server has an answer at present"],
]);

/**
 * Whether a request failed because its host's name could not be resolved. The system has retried then: a
 * retry at once would only wait again.
 */
export function isLookupFailure(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return false;
  return error.cause instanceof LookupFailure || isLookupFailure(error.cause);
}

/** The cause of every error of a lookup. */
class LookupFailure extends Error {}

function blockedError(host: string, what: string): ServiceError {
  return new ServiceError(
    "address_blocked",
    `refused to connect to ${shorten(host, 100)}${what}: only public addresses are fetched; ` +
      "ALLOW_NETWORKS can open other networks",
  );
}

function lookupError(host: string, why: string, retryable: boolean, reason?: unknown) {
  const message = `could not resolve ${shorten(host, 100)}: ${why}`;
  const cause = new LookupFailure(why, { cause: reason });
  return new ServiceError("upstream_unreachable", message, { cause, retryable });
}

function lookupTimeoutError(host: string, timeoutMs: number): ServiceError {
  const message = `DNS lookup of ${shorten(host, 100)} took over ${timeoutMs} ms`;
  return new ServiceError("upstream_timeout", message, { cause: new LookupFailure(message) });
}

/** Returns all addresses of a host name. */
export type Lookup = (hostname: string, context: LookupContext) => Promise<readonly LookupAddress[]>;

interface LookupContext {
  /** For whom. */
  owner: string;
  /** Aborted when no caller waits for the addresses. */
  signal: AbortSignal;
}

/**
 * Names that are looked up at a time. The system's resolver keeps a thread busy for each, up to half of those that `start.js` sets, and
 * for seconds if a name server is silent, even after the caller has given up. One of them is left for lookups that are not shared.
 */
const maxLookups = 15;

/**
 * Creates a lookup by `lookup`, default the system's resolver, that owners share: those of one take at most half of the places
 * that others leave. Further ones wait.
 */
export function createSharedLookup(lookup: Lookup = lookUpBySystem): Lookup {
  const shares = new Shares(maxLookups, "half");
  return async (hostname, context) => shares.run(context.owner, context.signal, () => lookup(hostname, context));
}

/** Returns the addresses in the order of the system's resolver. */
function lookUpBySystem(hostname: string) {
  return systemLookup(hostname, { all: true, order: "verbatim" });
}
