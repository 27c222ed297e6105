import type { Pool } from "undici";
import { undici } from "../undici.ts";

/** Hosts to which connections stay open while no request needs them. */
const maxIdleHosts = 64;

export type HostPools = ReturnType<typeof createHostPools>;

/**
 * Creates the connections to all hosts, which are reused. They are kept for the 64 hosts whose last request has ended last; the servers alone
 * would decide how many are open, as each may ask for a long time.
 *
 * @param options Of each pool.
 */
export function createHostPools(options: Pool.Options) {
  const pools = new Map<string, { pool: Pool; requests: number }>();
  /** Origins without a request, those first that have had none for longest. */
  const idle = new Set<string>();
  let isDestroyed = false;

  function drop(origin: string): void {
    idle.delete(origin);
    void pools.get(origin)?.pool.close();
    pools.delete(origin);
  }

  return {
    /** Returns the connections to `origin`, until `release` is called, once. */
    take(origin: string): { pool: Pool; release: () => void } {
      if (isDestroyed) throw new undici.errors.ClientDestroyedError();
      const known = pools.getOrInsertComputed(origin, () => ({ pool: new undici.Pool(origin, options), requests: 0 }));
      known.requests += 1;
      idle.delete(origin);
      function release(): void {
        known.requests -= 1;
        if (known.requests > 0 || isDestroyed) return;
        idle.add(origin);
        const [oldest] = idle;
        if (idle.size > maxIdleHosts && oldest !== undefined) drop(oldest);
      }
      return { pool: known.pool, release };
    },
    /** Closes all sockets; safe to call twice. */
    async destroy(): Promise<void> {
      isDestroyed = true;
      await Promise.all(pools.values().map(({ pool }) => pool.destroy()));
      pools.clear();
    },
  };
}
