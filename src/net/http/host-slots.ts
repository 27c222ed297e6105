import { type Release, Shares } from "../../async/shares.ts";

export type HostSlots = ReturnType<typeof createHostSlots>;

/**
 * Limits the concurrent requests to each host to `perHost`; further ones wait. A free slot goes to the owner that has the fewest; an
 * owner that has none while another one has several may get one more.
 */
export function createHostSlots(perHost: number) {
  const hosts = new Map<string, Shares>();
  return {
    /** Number of hosts with a taken slot; others use no memory. */
    get size(): number {
      return hosts.size;
    },

    /**
     * Waits for a slot, in order of arrival among the calls of the owner. Returns the function that releases it, safe to
     * call twice. Rejects with `signal.reason` if `signal` is aborted first.
     */
    async acquire(host: string, owner: string, signal: AbortSignal): Promise<Release> {
      signal.throwIfAborted();
      const shares = hosts.getOrInsertComputed(host, () => new Shares(perHost, { isFirm: true, hasSpare: true }));
      const release = await shares.wait(owner, signal);
      return () => {
        release();
        if (shares.taken === 0 && hosts.get(host) === shares) hosts.delete(host);
      };
    },
  };
}
