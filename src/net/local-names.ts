/**
 * Whether a host name is one that only a machine or its own network can answer for, reserved or by
 * custom. This only saves the lookup: what such a name resolves to would be refused as well, and so
 * are names of other forms (a single label, say) wherever they resolve to a local address.
 */
export function isLocalName(hostname: string): boolean {
  const name = hostname.replace(/\.$/, "").toLowerCase();
  return localDomains.some((domain) => name === domain || name.endsWith(`.${domain}`));
}

const localDomains = [
  "localhost", // RFC 6761 §6.3
  "local", // RFC 6762 §3
  "home.arpa", // RFC 8375
  "internal", // kept by ICANN for private use; cloud metadata servers
  "intranet", // this and the next four: RFC 6762 appendix G
  "private",
  "corp",
  "home",
  "lan",
  "localdomain",
  "svc", // Kubernetes services, short form
];
