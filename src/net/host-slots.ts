/** Keeps the requests to each host to a number at a time; the others wait in order. */
export interface HostSlots {
  /** Hosts with a slot taken; the others cost no memory. */
  readonly size: number;
  /**
   * Waits for a slot and gives the function that gives it back, safe to call twice.
   * Rejects with `signal.reason` when `signal` is aborted first.
   */
  acquire(host: string, signal: AbortSignal): Promise<() => void>;
}

interface Host {
  taken: number;
  /** In order of arrival; each takes over a slot that is given back. */
  waiting: Set<() => void>;
}

export function createHostSlots(perHost: number): HostSlots {
  const hosts = new Map<string, Host>();

  function giveBack(name: string, host: Host): void {
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
      let held = true;
      return () => {
        if (held) giveBack(name, host);
        held = false;
      };
    },
  };
}

async function waitForSlot(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const leave = () => {
    waiting.delete(resolve);
    reject(signal.reason);
  };
  waiting.add(resolve);
  signal.addEventListener("abort", leave, { once: true });
  try {
    await promise;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
