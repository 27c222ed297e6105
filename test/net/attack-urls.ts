import type { Lookup } from "../../src/net/addresses/address-guard.ts";
import { corpusRows } from "./corpus.ts";

interface AttackUrl {
  id: string;
  url: string;
  dns: { A?: string[]; AAAA?: string[]; mode?: string } | null;
  expect: "block" | "reject" | "allow" | "dns" | "policy" | "error";
}

/** None if there is no corpus. */
export const attackUrls = corpusRows<AttackUrl>("ssrf_urls.json");

/** Returns those with one of the verdicts, with a title for a test. */
export function expecting(...verdicts: AttackUrl["expect"][]) {
  return attackUrls
    .filter((row) => verdicts.includes(row.expect))
    .map((row) => ({ ...row, title: JSON.stringify(row.url) }));
}

export const publicAddress = "93.184.216.34";

/** Returns a lookup that finds these addresses for every name. */
export function lookupTo(...addresses: string[]): Lookup {
  return async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
}
