/**
 * Whether a host name is reserved, or by custom used, for one machine or a local network. The check
 * only saves a lookup: the addresses of every name are checked too, also of names that are not listed
 * here, such as single labels.
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

const localName = new RegExp(
  `(?:^|\\.)(?:${localDomains.map((domain) => RegExp.escape(domain)).join("|")})\\.?$`,
  "i",
);
