import { untilAborted } from "./deadline.ts";

/**
 * Places for work of which only so much is done at a time, shared by owners so that none starves the others:
 *
 * - an owner without a place always gets one;
 * - one that has fewer than its share, `total` divided by the owners that have places, gets another one;
 * - beyond that, an owner gets what is free of the `total`: one alone gets all of them.
 *
 * Nobody loses a place. So that shares are found while others have more than theirs, up to twice `total` places are taken
 * for a while, and more only by owners with one place each. A `total` of 0 is no place for anybody.
 */
export interface Shares {
  /** Takes a place; undefined if the owner gets none now. */
  take(owner: string): Release | undefined;
  /**
   * Waits for a place. Places that become free go to the owner that has the fewest, each owner's calls in their order.
   *
   * @throws `signal.reason` when `signal` is aborted.
   */
  wait(owner: string, signal: AbortSignal): Promise<Release>;
  /** Returns how many places the owner may take now. */
  free(owner: string): number;
  /** Places that are taken. */
  readonly taken: number;
}

/** Gives a place back; safe to call twice. */
export type Release = () => void;

export function createShares(total: number): Shares {
  /** How many places each owner has; at least one. */
  const held = new Map<string, number>();
  /** By owner, in the order of the calls. */
  const waiting = new Map<string, Set<(release: Release) => void>>();
  let taken = 0;

  const places = (owner: string) => held.get(owner) ?? 0;

  /** As `Shares.free`. */
  function free(owner: string): number {
    if (total === 0) return 0;
    const own = places(owner);
    const owners = held.size + Number(own === 0);
    const upToShare = Math.min(Math.floor(total / owners) - own, 2 * total - taken);
    return Math.max(total - taken, upToShare, Number(own === 0));
  }

  function add(owner: string, change: 1 | -1): void {
    const own = places(owner) + change;
    if (own === 0) held.delete(owner);
    else held.set(owner, own);
    taken += change;
  }

  function takePlace(owner: string): Release {
    let isTaken = true;
    add(owner, 1);
    return () => {
      if (!isTaken) return;
      isTaken = false;
      add(owner, -1);
      admitWaiting();
    };
  }

  function admitWaiting(): void {
    for (;;) {
      const [next] = [...waiting].filter(([owner]) => free(owner) > 0).toSorted(([a], [b]) => places(a) - places(b));
      const [owner = "", [admit] = []] = next ?? [];
      if (admit === undefined) return;
      leave(owner, admit);
      admit(takePlace(owner));
    }
  }

  function leave(owner: string, admit: (release: Release) => void): void {
    const calls = waiting.get(owner);
    calls?.delete(admit);
    if (calls?.size === 0) waiting.delete(owner);
  }

  return {
    take: (owner) => (free(owner) > 0 ? takePlace(owner) : undefined),

    async wait(owner, signal) {
      signal.throwIfAborted();
      if (!waiting.has(owner) && free(owner) > 0) return takePlace(owner);
      const { promise, resolve } = Promise.withResolvers<Release>();
      waiting.set(owner, (waiting.get(owner) ?? new Set()).add(resolve));
      try {
        return await untilAborted(promise, signal);
      } catch (error) {
        leave(owner, resolve);
        // It may have got a place in the same moment.
        void promise.then((release) => release());
        throw error;
      }
    },

    free,

    get taken() {
      return taken;
    },
  };
}
