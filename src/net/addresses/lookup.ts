import type { LookupAddress } from "node:dns";
import { lookup as systemLookup } from "node:dns/promises";
import { Shares } from "../../async/shares.ts";

/** Returns all addresses of a host name. */
export type Lookup = (hostname: string, context: LookupContext) => Promise<readonly LookupAddress[]>;

interface LookupContext {
  /** For whom. */
  owner: string;
  /** Aborted when nobody waits for the addresses any more. */
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
  const shares = new Shares(maxLookups, { leavesHalf: true });
  return async (hostname, context) => shares.run(context.owner, context.signal, () => lookup(hostname, context));
}

/** Returns the addresses in the order of the system's resolver. */
export function lookUpBySystem(hostname: string) {
  return systemLookup(hostname, { all: true, order: "verbatim" });
}
