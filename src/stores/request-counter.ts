import type { RequestCount } from "./key-store.ts";

/** How long requests are counted together. */
export const countWindowMs = 60_000;

/** Counts the requests of keys in memory; for stores that one process has to itself. */
export function createRequestCounter(steadyMs: () => number): (name: string) => RequestCount {
  const windows = new Map<string, { count: number; endsAtMs: number }>();
  return (name) => {
    const nowMs = steadyMs();
    const known = windows.get(name);
    const isOpen = known !== undefined && known.endsAtMs > nowMs;
    const current = isOpen ? known : { count: 0, endsAtMs: nowMs + countWindowMs };
    current.count += 1;
    windows.set(name, current);
    return { count: current.count, endsInMs: current.endsAtMs - nowMs };
  };
}
