import { BlockList, isIP } from "node:net";
import { specialNetworks } from "./special-networks.ts";

/** A set of IP networks. IPv4 and IPv6 are kept apart: `::/0` holds no IPv4 address. */
export interface Networks {
  readonly empty: boolean;
  has(address: string): boolean;
}

/**
 * Reads networks in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3). Bits after the prefix are ignored.
 *
 * @throws RangeError that names the first text that is no network.
 */
export function parseNetworks(cidrs: readonly string[]): Networks {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const cidr of cidrs) {
    const { address, prefix, family } = parseCidr(cidr);
    lists[family].addSubnet(address, prefix, family);
  }
  return {
    empty: cidrs.length === 0,
    has(address) {
      const family = familyOf(address);
      // check() takes any address for IPv4 unless told otherwise, and then answers false.
      return family !== undefined && lists[family].check(withoutZone(address), family);
    },
  };
}

/**
 * The class of an address that is not on the public internet ("loopback", "private", …); `undefined`
 * for a public one. IPv6 is public by allow-list: 2000::/3 without the special networks in it, so
 * that no way of writing an IPv4 address into an IPv6 one opens anything.
 */
export function specialClassOf(address: string): string | undefined {
  const family = familyOf(address);
  if (family === undefined) return "not an IP address";
  if (isPublic[family](address)) return undefined;
  return classes.find(({ networks }) => networks.has(address))?.name ?? "reserved";
}

const classes = specialNetworks.map(([cidr, name]) => ({ name, networks: parseNetworks([cidr]) }));
const special = parseNetworks(specialNetworks.map(([cidr]) => cidr));
const globalUnicast = parseNetworks(["2000::/3"]);

const isPublic = {
  ipv4: (address: string) => !special.has(address),
  ipv6: (address: string) => globalUnicast.has(address) && !special.has(address),
};

function parseCidr(cidr: string) {
  const [address = "", digits = "", ...rest] = cidr.split("/");
  const family = familyOf(address);
  const prefix = /^\d{1,3}$/.test(digits) ? Number(digits) : Number.POSITIVE_INFINITY;
  const zone = address.includes("%");
  if (!family || zone || rest.length > 0 || prefix > (family === "ipv4" ? 32 : 128)) {
    const text = JSON.stringify(cidr.slice(0, 100));
    throw new RangeError(
      `ALLOW_NETWORKS must be networks like 127.0.0.0/8 or fd00::/8, got ${text}`,
    );
  }
  return { address, prefix, family };
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? "ipv4" : "ipv6";
}

/** `fe80::1%eth0` → `fe80::1` (RFC 4007 §11); BlockList finds no address that has a zone. */
function withoutZone(address: string): string {
  const zone = address.indexOf("%");
  return zone === -1 ? address : address.slice(0, zone);
}
