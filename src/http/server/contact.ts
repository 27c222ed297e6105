import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP, isIPv4 } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Networks } from "../../net/addresses/addresses.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Read it once: it is worked out each time. */
    readonly contact: Contact;
  }
}

/** Where a request comes from, as far as the connection and reverse proxies that are trusted say so. */
interface Contact {
  /** As `clientOf` its address. */
  readonly client: string | undefined;
  /** The host that the client asked the first proxy for; undefined if none says so. Any text. */
  readonly host: string | undefined;
  /** Whether the client uses HTTPS. */
  readonly isHttps: boolean;
}

/** Whether an address is that of a reverse proxy that is trusted. */
export type IsProxy = (address: string | undefined) => boolean;

/** Returns a function that says whether an address is in `trusted`. */
export function createProxyCheck(trusted: Networks): IsProxy {
  return (address) => address !== undefined && trusted.has(withoutMapping(address));
}

/**
 * Gives each request its `contact`. `X-Forwarded-For`, `-Proto` and `-Host` count if the connection is a proxy's, and
 * `Forwarded` (RFC 7239) if there are none of these. Of a chain, the client is the last hop that is not a proxy: what is
 * before it, the client may have written. Malformed values are ignored.
 */
export function addContacts(app: FastifyInstance, isProxy: IsProxy): void {
  app.decorateRequest("contact", {
    getter(): Contact {
      return contactOf(this.raw, isProxy);
    },
  });
}

/** Returns what identifies a client, an IPv4 address or an IPv6 network of 64 bits; undefined for loopback. */
export function clientOf(remoteAddress: string): string | undefined {
  const address = remoteAddress.includes(":")
    ? withoutMapping(remoteAddress).replace(/%.*/, "").toLowerCase()
    : remoteAddress;
  if (address === "::1" || address.startsWith("127.")) return undefined;
  if (!address.includes(":")) return address;
  const [start = "", end] = address.split("::");
  const groups = start.split(":");
  const rest = end === undefined ? [] : end.split(":");
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => "0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}

/** Returns the IPv4 address that a socket for both families shows as an IPv6 one. */
function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Returns the contact of a request. */
export function contactOf({ socket: { remoteAddress }, headers }: IncomingMessage, isProxy: IsProxy): Contact {
  if (remoteAddress === undefined) return unknown;
  const hops = hasForwarding(headers) && isProxy(remoteAddress) ? hopsOf(headers) : [];
  let [address, seen] = [remoteAddress, hops.at(0)];
  for (const hop of hops) {
    seen = hop;
    if (hop.address === undefined) break;
    address = hop.address;
    if (!isProxy(address)) break;
  }
  return { client: clientOf(address), host: seen?.host, isHttps: seen?.proto?.toLowerCase() === "https" };
}

/** Of a connection that was closed, or that has no addresses. */
const unknown: Contact = { client: undefined, host: undefined, isHttps: false };

/** What a proxy says of the connection that it got. */
interface Hop {
  address: string | undefined;
  host: string | undefined;
  proto: string | undefined;
}

/** No chain is longer; what is further away does not count. */
const maxHops = 32;

const names = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"] as const;
const anyNames = ["forwarded", ...names] as const;

function hasForwarding(headers: IncomingHttpHeaders): boolean {
  for (const name of anyNames) if (headers[name] !== undefined) return true;
  return false;
}

/** Returns the hops, the nearest one first. */
function hopsOf(headers: IncomingHttpHeaders): Hop[] {
  const [addresses = [], protos = [], hosts = []] = names.map((name) => itemsOf(String(headers[name] ?? "")));
  if (addresses.length + protos.length + hosts.length === 0)
    return itemsOf(headers.forwarded ?? "").map(parseForwarded);
  // Without addresses it is not known which item is whose: then the first one counts, which the browser's proxy has written.
  if (addresses.length === 0) return [{ address: undefined, proto: protos.at(-1), host: hosts.at(-1) }];
  return addresses.map((address, n) => ({
    address: parseAddress(address),
    // A proxy may replace what another one wrote, instead of adding to it.
    proto: protos[n] ?? protos.at(-1),
    host: hosts[n] ?? hosts.at(-1),
  }));
}

/**
 * Returns the items of a list, the last one first, at most `maxHops`: from its end, so that nothing that a client wrote, such
 * as a quote without its end, hides what a proxy has added.
 */
function itemsOf(list: string): string[] {
  const items: string[] = [];
  let isQuoted = false;
  let end = list.length;
  for (let at = end - 1; at >= 0 && items.length < maxHops; at--) {
    if (list[at] === '"') isQuoted = !isQuoted;
    if (list[at] !== "," || isQuoted) continue;
    items.push(list.slice(at + 1, end).trim());
    end = at;
  }
  if (items.length < maxHops && list !== "") items.push(list.slice(0, end).trim());
  return items;
}

/** An element of `Forwarded` with an address, a host and more is shorter. */
const maxElementLength = 1_000;

/** Parses an element of `Forwarded`; of a pair that is given twice, the last one counts. */
function parseForwarded(element: string): Hop {
  if (element.length > maxElementLength) return { address: undefined, host: undefined, proto: undefined };
  const pairs = element.split(";").map((pair): [string, string] => {
    const [name = "", ...rest] = pair.split("=");
    return [name.trim().toLowerCase(), unquoted(rest.join("=").trim())];
  });
  const { for: node = "", host, proto } = Object.fromEntries(pairs);
  return { address: parseAddress(node), host, proto };
}

function unquoted(text: string): string {
  return /^"(.*)"$/.exec(text)?.[1] ?? text;
}

/** Parses an address with an optional port; undefined for anything else, such as `unknown`. */
function parseAddress(text: string): string | undefined {
  if (isIP(text) !== 0) return text;
  const [, inBrackets = "", beforePort = ""] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/.exec(text) ?? [];
  if (isIP(inBrackets) === 6) return inBrackets;
  return isIPv4(beforePort) ? beforePort : undefined;
}
