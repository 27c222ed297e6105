import { createMetrics, type Metrics } from "../../src/metrics/metrics.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { measureStore } from "../../src/stores/measured.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { parseExposition } from "./exposition.ts";

export const freeBytes = 123_456;
export const files = { freeBytes: async () => freeBytes };

/** Returns the metrics of a memory store, and the store, measured. */
export function observeStore(store: TaskStore = createMemoryStore({ maxQueued: 20_000 })) {
  const metrics = createMetrics({ store, files });
  return { metrics, store: measureStore(store, metrics.onStoreCall) };
}

export async function scrape(metrics: Metrics) {
  return parseExposition(await metrics.read());
}
