import type { OwnerUse } from "../quotas.ts";

/** What an owner has, and when its turn is. */
export interface OwnerTurn extends OwnerUse {
  /** Number of its last claim; 0: it had none. */
  claimed: number;
}

type Turn = readonly [owner: string, turn: OwnerTurn];

/** Sorts owners as the contract of `claim` says. */
export function byTurn([oneName, one]: Turn, [otherName, other]: Turn): number {
  return (
    one.running - other.running || one.claimed - other.claimed || (oneName < otherName ? -1 : 1)
  );
}

export function bytesOfAll(turns: ReadonlyMap<string, OwnerTurn>): number {
  return turns.values().reduce((sum, { bytes }) => sum + bytes, 0);
}
