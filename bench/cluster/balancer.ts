import { setInterval as every } from "node:timers/promises";

/** Chooses a process for each request, as a load balancer does. */
export interface Balancer {
  /** Resolves once the process at `url` is ready. */
  add(url: string): Promise<void>;
  remove(url: string): void;
  /**
   * Returns the next URL, round robin, of those that were ready at their last check.
   *
   * @throws Error if none is.
   */
  ready(): string;
  /** Returns the next URL of all, round robin. */
  any(): string;
  close(): Promise<void>;
}

/** Interval of the health checks. */
export const checkMs = 100;

/** Checks `/health/ready` of each process every `checkMs`. */
export function openBalancer(): Balancer {
  const all = new Set<string>();
  const healthy = new Set<string>();
  const closing = new AbortController();
  let turn = 0;

  async function check(url: string): Promise<void> {
    if ((await isReady(url)) && all.has(url)) healthy.add(url);
    else healthy.delete(url);
  }

  async function watch(): Promise<void> {
    const { signal } = closing;
    try {
      for await (const _ of every(checkMs, undefined, { signal })) for (const url of all) void check(url);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  function next(urls: ReadonlySet<string>): string {
    const url = [...urls][turn++ % urls.size];
    if (url === undefined) throw new Error("no process is ready");
    return url;
  }

  const watching = watch();
  return {
    async add(url) {
      all.add(url);
      while (!healthy.has(url)) await check(url);
    },
    remove(url) {
      all.delete(url);
      healthy.delete(url);
    },
    ready: () => next(healthy),
    any: () => next(all),
    async close() {
      closing.abort();
      await watching;
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(1_000) });
    await response.bytes();
    return response.ok;
  } catch {
    return false;
  }
}
