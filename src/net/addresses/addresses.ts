import { BlockList, isIP, isIPv6 } from "node:net";
import { specialNetworks } from "./not-public.ts";

export interface Networks {
  readonly cidrs: readonly string[];
  has(address: string): boolean;
}

/**
 * Parses a set of networks in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3). Bits after the prefix are ignored. An IPv6 network
 * contains no IPv4 address: `::/0` is all of IPv6 only.
 *
 * @throws RangeError that names `setting` and the first text that is not a network.
 */
export function parseNetworks(cidrs: readonly string[], setting = "ALLOW_NETWORKS"): Networks {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const cidr of cidrs) {
    const { address, prefix, family } = parseCidr(cidr, setting);
    lists[family].addSubnet(address, prefix, family);
  }
  return {
    cidrs,
    has(address) {
      const family = familyOf(address);
      // Without the family, check() takes every address for IPv4 and returns false for IPv6.
      return family !== undefined && lists[family].check(withoutZone(address), family);
    },
  };
}

/**
 * Returns the class of an address that is not on the public internet ("loopback", "private", …);
 * undefined if it is public. IPv6 has an allow-list, 2000::/3 without the special networks in it, so
 * that an IPv4 address embedded in an IPv6 one is never public.
 */
export function specialClassOf(address: string): string | undefined {
  const family = familyOf(address);
  if (family === undefined) return notAddress;
  if (isPublic[family](address)) return undefined;
  return classes.find(({ networks }) => networks.has(address))?.name ?? reserved;
}

const notAddress = "not an IP address";
const reserved = "reserved";

/** What `specialClassOf` may return. */
export const specialClasses: readonly string[] = [
  ...new Set([...specialNetworks.map(([, name]) => name), notAddress, reserved]),
];

const classes = specialNetworks.map(([cidr, name]) => ({ name, networks: parseNetworks([cidr]) }));
const special = parseNetworks(specialNetworks.map(([cidr]) => cidr));
const globalUnicast = parseNetworks(["2000::/3"]);

const isPublic = {
  ipv4: (address: string) => !special.has(address),
  ipv6: (address: string) => globalUnicast.has(address) && !special.has(address),
};

function parseCidr(cidr: string, setting: string) {
  const [address = "", digits = "", ...rest] = cidr.split("/");
  const family = familyOf(address);
  const prefix = /^\d{1,3}$/.test(digits) ? Number(digits) : Number.POSITIVE_INFINITY;
  const zone = address.includes("%");
  if (!family || zone || rest.length > 0 || prefix > (family === "ipv4" ? 32 : 128)) {
    const text = JSON.stringify(cidr.slice(0, 100));
    throw new RangeError(`${setting} must be networks like 127.0.0.0/8 or fd00::/8, got ${text}`);
  }
  return { address, prefix, family };
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? "ipv4" : "ipv6";
}

/** Returns `fe80::1` for `fe80::1%eth0` (RFC 4007 §11): BlockList matches no address with a zone. */
function withoutZone(address: string): string {
  const zone = address.indexOf("%");
  return zone === -1 ? address : address.slice(0, zone);
}

/**
 * Returns the IPv4 addresses that packets to an IPv6 address may reach: those embedded in it by mapping,
 * translation (NAT64) or tunnels. One in most cases; none if `address` embeds none or is IPv4 itself.
 */
export function embeddedIPv4(address: string): string[] {
  const form = forms.find(({ networks }) => networks.has(address));
  if (form === undefined) return isatap(address);
  const bytes = bytesOf(address);
  return form.places.map((place) => place.map((at) => (bytes[at] ?? 0) ^ form.mask).join("."));
}

const last = [12, 13, 14, 15];
/** The IPv6 networks that embed IPv4 addresses, and the bytes that hold one. */
const forms = [
  // An address of its own, not 0.0.0.0 or 0.0.0.1.
  { cidr: "::/127", places: [] },
  { cidr: "::/96", places: [last] },
  { cidr: "::ffff:0:0/96", places: [last] },
  { cidr: "::ffff:0:0:0/96", places: [last] },
  { cidr: "64:ff9b::/96", places: [last] },
  // The network's operator chooses the length of the prefix (RFC 8215 §3, RFC 6052 §2.2).
  { cidr: "64:ff9b:1::/48", places: [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], last] },
  { cidr: "2002::/16", places: [[2, 3, 4, 5]] },
  // Teredo inverts the client's address (RFC 4380 §4).
  { cidr: "2001::/32", places: [last], mask: 255 },
].map(({ cidr, places, mask = 0 }) => ({ networks: parseNetworks([cidr]), places, mask }));

/** ISATAP has the address in the interface identifier of any prefix (RFC 5214 §6.1). */
function isatap(address: string): string[] {
  if (!isIPv6(address)) return [];
  const bytes = bytesOf(address);
  const identifier = Buffer.from(bytes.slice(8, 12)).toString("hex");
  return /^0[02]005efe$/.test(identifier) ? [bytes.slice(12).join(".")] : [];
}

/** Returns the 16 bytes of an IPv6 address. */
function bytesOf(address: string): number[] {
  // WHATWG writes all forms as hexadecimal groups.
  const { hostname } = new URL(`http://[${withoutZone(address)}]`);
  const [head = "", tail = ""] = hostname.slice(1, -1).split("::");
  const [start, end] = [groupsOf(head), groupsOf(tail)];
  const zeros = Array<number>(8 - start.length - end.length).fill(0);
  return [...start, ...zeros, ...end].flatMap((group) => [group >> 8, group & 255]);
}

function groupsOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}
