import type { LookupAddress } from "node:dns";
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { ServiceError } from "../errors.ts";
import { parseNetworks, specialClassOf } from "./addresses.ts";
import { codeOf } from "./error-code.ts";
import { shorten } from "./http-url.ts";
import { isLocalName } from "./local-names.ts";

/** Every address of a name. */
export type Lookup = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface AddressGuardOptions {
  /** Networks in CIDR notation that may be fetched although they are not public; default none. */
  allowNetworks?: readonly string[];
  /** Default: the system's resolver, all addresses, in its order. */
  lookup?: Lookup;
  /** Longest wait for a lookup, milliseconds. */
  lookupTimeoutMs: number;
}

/** Decides which hosts may be connected to. */
export interface AddressGuard {
  /**
   * The addresses to connect to, and no others, for a host name or an IP address (IPv6 with or
   * without brackets). One lookup; if any address in its answer is refused, the host is.
   *
   * Local names (`localhost`, `*.internal`, …) are refused without a lookup as long as
   * no network is opened; afterwards their addresses decide, like everyone's.
   *
   * @throws ServiceError `address_blocked`, `upstream_unreachable` (no address), `upstream_timeout`
   */
  resolve(hostname: string): Promise<readonly LookupAddress[]>;
  /** `address_blocked` unless `address`, which `hostname` stands for, is public or opened. */
  refusal(hostname: string, address: string): ServiceError | undefined;
}

/** @throws RangeError that names a text in `allowNetworks` that is no network. */
export function createAddressGuard({
  allowNetworks = [],
  lookup = (hostname) => systemLookup(hostname, { all: true, order: "verbatim" }),
  lookupTimeoutMs,
}: AddressGuardOptions): AddressGuard {
  const opened = parseNetworks(allowNetworks);

  function refusal(host: string, address: string): ServiceError | undefined {
    const name = opened.has(address) ? undefined : specialClassOf(address);
    if (name === undefined) return undefined;
    return blocked(
      host,
      host === address ? ` (${name})` : `, which resolves to ${address} (${name})`,
    );
  }

  return {
    refusal,

    async resolve(hostname) {
      const host = hostname.replace(/^\[(.*)\]$/, "$1");
      const isLiteral = isIP(host) !== 0;
      if (!isLiteral && opened.empty && isLocalName(host)) {
        throw blocked(host, ", a name of local networks");
      }
      const found = isLiteral ? [host] : await findAddresses(lookup, host, lookupTimeoutMs);
      for (const address of found) {
        const fault = refusal(host, address);
        if (fault !== undefined) throw fault;
      }
      return found.map((address) => ({ address, family: isIP(address) }));
    },
  };
}

async function findAddresses(lookup: Lookup, host: string, timeoutMs: number) {
  const timeout = Promise.withResolvers<never>();
  const expire = () => timeout.reject(lookupTimeout(host, timeoutMs));
  const timer = setTimeout(expire, timeoutMs).unref();
  try {
    const addresses = await Promise.race([lookup(host), timeout.promise]);
    if (addresses.length > 0) return addresses.map(({ address }) => address);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw unresolved(host, codeOf(error) ?? "the lookup failed", error);
  } finally {
    clearTimeout(timer);
  }
  throw unresolved(host, "it has no address");
}

function blocked(host: string, what: string): ServiceError {
  return new ServiceError(
    "address_blocked",
    `refused to connect to ${shorten(host, 100)}${what}: only public addresses are fetched; ` +
      "ALLOW_NETWORKS can open other networks",
  );
}

function unresolved(host: string, why: string, cause?: unknown): ServiceError {
  const message = `could not resolve ${shorten(host, 100)}: ${why}`;
  return new ServiceError("upstream_unreachable", message, { cause });
}

function lookupTimeout(host: string, timeoutMs: number): ServiceError {
  const message = `DNS lookup of ${shorten(host, 100)} took over ${timeoutMs} ms`;
  return new ServiceError("upstream_timeout", message);
}
