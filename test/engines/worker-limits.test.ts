import { expect, test, vi } from "vitest";
import { watchLimits } from "../../src/engines/native/worker/worker-limits.ts";

test.skipIf(process.platform !== "linux")(
  "the memory of a worker counts for the limit of all only while it works",
  async () => {
    const usage = new Map<number, number>();
    const limits = {
      heapMiB: 100,
      residentMiB: 100_000,
      totalMiB: 100_000,
      shareMiB: 1,
      keptMiB: 160,
      silenceMs: 60_000,
      workMs: 60_000,
    };
    const watch = watchLimits(process.pid, limits, usage, () => {});
    await vi.waitUntil(() => usage.has(process.pid), 60_000);
    const { rss } = process.memoryUsage();
    expect(Math.abs((usage.get(process.pid) ?? 0) - rss / 1024 ** 2)).toBeLessThan(100);
    watch.stop();
    expect(usage).toEqual(new Map());
  },
);
