/** Limits the concurrent requests to each host; further ones wait in order of arrival. */
export interface HostSlots {
  /** Number of hosts with a taken slot; others use no memory. */
  readonly size: number;
  /**
   * Waits for a slot. Returns the function that releases it, safe to call twice. Rejects with
   * `signal.reason` if `signal` is aborted first.
   */
  acquire(host: string, signal: AbortSignal): Promise<() => void>;
}

interface Host {
  taken: number;
  /** In order of arrival; a released slot goes to the first. */
  waiting: Set<() => void>;
}

/** Creates slots for `perHost` concurrent requests per host. */
export function createHostSlots(perHost: number): HostSlots {
  const hosts = new Map<string, Host>();

  function release(name: string, host: Host): void {
    const [next] = host.waiting;
    if (next !== undefined) {
      host.waiting.delete(next);
      next();
      return;
    }
    host.taken -= 1;
    if (host.taken === 0) hosts.delete(name);
  }

  return {
    get size() {
      return hosts.size;
    },

    async acquire(name, signal) {
      signal.throwIfAborted();
      const host = hosts.get(name) ?? { taken: 0, waiting: new Set() };
      hosts.set(name, host);
      if (host.taken < perHost) host.taken += 1;
      else await waitForSlot(host.waiting, signal);
      let isTaken = true;
      return () => {
        if (isTaken) release(name, host);
        isTaken = false;
      };
    },
  };
}

async function waitForSlot(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => {
    waiting.delete(resolve);
    reject(signal.reason);
  };
  waiting.add(resolve);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
