import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { watchLimits } from "../../src/engines/native/worker/worker-limits.ts";
import type { ServiceError } from "../../src/model/errors.ts";
import { processorMsOf } from "../../src/system/processor-time.ts";

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
  ["computes", "for (;;);", hasComputed, { code: "upstream_invalid", retryable: false }],
  ["does not run", 'process.kill(process.pid, "SIGSTOP")', isStopped, { code: "unavailable", retryable: true }],
])("a worker that is silent because it %s", async (_, program, isReady, error) => {
  // The machine decides how much processor time the worker gets in a second, the test how many seconds pass.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const child = spawn(process.execPath, ["--eval", program], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const pid = child.pid ?? 0;
  const onExceeded = vi.fn<(given: ServiceError) => void>();
  watchLimits(pid, { ...limits, silenceMs: 5_000 }, new Map(), onExceeded);
  vi.advanceTimersByTime(4_000);
  while (!isReady(pid)) await setTimeout(10);
  expect(onExceeded).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2_000);
  expect(onExceeded).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(error));
});

/** More than the tenth of those 5 s, however long it took to start. */
function hasComputed(pid: number): boolean {
  return processorMsOf(pid) > 1_000;
}

function isStopped(pid: number): boolean {
  return /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}
