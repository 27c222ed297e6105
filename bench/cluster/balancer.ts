import { setInterval as every } from "node:timers/promises";

/** Names an address for each request, as a load balancer does. */
export interface Balancer {
  /** Resolves once the new address is ready. */
  add(url: string): Promise<void>;
  remove(url: string): void;
  /**
   * The next in turn of those that said that they are ready when they were asked last.
   *
   * @throws Error where there is none.
   */
  ready(): string;
  /** The next in turn of all. */
  any(): string;
  close(): Promise<void>;
}

/** How often each address is asked for its health. */
export const checkMs = 100;

/** Asks each address for `/health/ready` all the time. */
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
      for await (const _ of every(checkMs, undefined, { signal }))
        for (const url of all) void check(url);
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
    const answer = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(1_000) });
    await answer.bytes();
    return answer.ok;
  } catch {
    return false;
  }
}
