import { isIPv6 } from "node:net";
import { parseNetworks, withoutZone } from "./addresses.ts";

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
  {
    cidr: "64:ff9b:1::/48",
    places: [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], last],
  },
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
