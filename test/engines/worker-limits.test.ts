import { spawn } from "node:child_process";
import { expect, onTestFinished, test, vi } from "vitest";
import { watchLimits } from "../../src/engines/native/worker/worker-limits.ts";

const limits = {
  heapMiB: 100,
  residentMiB: 100_000,
  totalMiB: 100_000,
  shareMiB: 1,
  keptMiB: 160,
  silenceMs: 60_000,
  workMs: 60_000,
};

test.skipIf(process.platform !== "linux")(
  "the memory of a worker counts for the limit of all only while it works",
  async () => {
    const usage = new Map<number, number>();
    const watch = watchLimits(process.pid, limits, usage, () => {});
    await vi.waitUntil(() => usage.has(process.pid), 60_000);
    const { rss } = process.memoryUsage();
    expect(Math.abs((usage.get(process.pid) ?? 0) - rss / 1024 ** 2)).toBeLessThan(100);
    watch.stop();
    expect(usage).toEqual(new Map());
  },
);

test.skipIf(process.platform !== "linux").each([
  ["computes", "for (;;);", { code: "upstream_invalid", retryable: false }],
  ["does not run", 'process.kill(process.pid, "SIGSTOP")', { code: "unavailable", retryable: true }],
])("a worker that is silent because it %s", async (_, program, error) => {
  const child = spawn(process.execPath, ["--eval", program], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const { promise, resolve } = Promise.withResolvers<unknown>();
  watchLimits(child.pid ?? 0, { ...limits, silenceMs: 5_000 }, new Map(), resolve);
  expect(await promise).toMatchObject(error);
});
