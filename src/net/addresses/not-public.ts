/**
 * The networks that are not on the public internet: [network, class, source].
 *
 * Those of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190) whose "Globally Reachable" is
 * not true, and multicast, reserved and deprecated networks. A narrower network precedes the wider one. For IPv6 this
 * table only names classes: `addresses.ts` blocks everything outside of 2000::/3, listed or not.
 */
export const specialNetworks: readonly (readonly [string, string, string])[] = [
  ["0.0.0.0/8", "this network", "RFC 791 §3.2"],
  ["10.0.0.0/8", "private", "RFC 1918"],
  ["100.64.0.0/10", "shared (carrier-grade NAT)", "RFC 6598"],
  ["127.0.0.0/8", "loopback", "RFC 1122 §3.2.1.3"],
  ["169.254.0.0/16", "link-local", "RFC 3927"],
  ["172.16.0.0/12", "private", "RFC 1918"],
  ["192.0.0.0/24", "IETF protocol assignments", "RFC 6890 §2.1"],
  ["192.0.2.0/24", "documentation", "RFC 5737"],
  ["192.88.99.0/24", "6to4 relay anycast", "RFC 7526"],
  ["192.168.0.0/16", "private", "RFC 1918"],
  ["198.18.0.0/15", "benchmarking", "RFC 2544"],
  ["198.51.100.0/24", "documentation", "RFC 5737"],
  ["203.0.113.0/24", "documentation", "RFC 5737"],
  ["224.0.0.0/4", "multicast", "RFC 5771"],
  ["255.255.255.255/32", "broadcast", "RFC 919"],
  ["240.0.0.0/4", "reserved", "RFC 1112 §4"],
  ["::/128", "unspecified", "RFC 4291 §2.5.2"],
  ["::1/128", "loopback", "RFC 4291 §2.5.3"],
  ["::/96", "IPv4-compatible", "RFC 4291 §2.5.5.1"],
  ["::ffff:0:0/96", "IPv4-mapped", "RFC 4291 §2.5.5.2"],
  ["::ffff:0:0:0/96", "IPv4-translated", "RFC 2765 §2.1"],
  ["64:ff9b::/96", "IPv4 behind NAT64", "RFC 6052"],
  ["64:ff9b:1::/48", "IPv4 behind local NAT64", "RFC 8215"],
  ["100::/64", "discard-only", "RFC 6666"],
  ["100:0:0:1::/64", "dummy prefix", "RFC 9780"],
  ["2001::/23", "IETF protocol assignments", "RFC 2928"],
  ["2001:db8::/32", "documentation", "RFC 3849"],
  ["2002::/16", "6to4", "RFC 3056"],
  ["3fff::/20", "documentation", "RFC 9637"],
  ["5f00::/16", "segment routing", "RFC 9602"],
  ["fc00::/7", "unique local", "RFC 4193"],
  ["fe80::/10", "link-local", "RFC 4291 §2.5.6"],
  ["fec0::/10", "site-local", "RFC 3879"],
  ["ff00::/8", "multicast", "RFC 4291 §2.7"],
];

/**
 * Whether a host name is reserved, or by custom used, for one machine or a local network. The check only saves a
 * lookup: the addresses of every name are checked too, also of names that are not listed here, such as single labels.
 */
export function isLocalName(hostname: string): boolean {
  return localName.test(hostname);
}

const localDomains = [
  "localhost", // RFC 6761 §6.3
  "local", // RFC 6762 §3
  "home.arpa", // RFC 8375
  "internal", // reserved by ICANN for private use; cloud metadata servers
  "intranet", // this and the next four: RFC 6762 appendix G
  "private",
  "corp",
  "home",
  "lan",
  "localdomain",
  "svc", // short names of Kubernetes services
];

const localName = new RegExp(`(?:^|\\.)(?:${localDomains.map((domain) => RegExp.escape(domain)).join("|")})\\.?$`, "i");
