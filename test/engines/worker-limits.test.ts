import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { watchLimits } from "../../src/engines/native/worker/worker-limits.ts";
import type { ServiceError } from "../../src/model/errors.ts";

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
  [
    "computes",
    'while (process.cpuUsage().user < 700_000); process.stdout.write("ready"); for (;;);',
    5,
    { code: "upstream_invalid", retryable: false },
  ],
  [
    "does not run",
    'process.stdout.write("ready"); process.kill(process.pid, "SIGSTOP")',
    15,
    { code: "unavailable", retryable: true },
  ],
])("a worker that is silent, or works for too long, because it %s", async (_, program, limitS, error) => {
  // The machine decides how much processor time the worker gets in a second, the test how many seconds pass.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const child = spawn(process.execPath, ["--eval", program], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [onSilence, onWork] = [vi.fn<(given: ServiceError) => void>(), vi.fn<(given: ServiceError) => void>()];
  watchLimits(child.pid ?? 0, { ...limits, silenceMs: 5_000 }, new Map(), onSilence);
  watchLimits(child.pid ?? 0, { ...limits, workMs: 5_000 }, new Map(), onWork).onWork({ kind: "merge", bytes: 0 });
  vi.advanceTimersByTime(4_000);
  await once(child.stdout, "data");
  vi.advanceTimersByTime(1_000 * (limitS - 5));
  for (const onExceeded of [onSilence, onWork]) expect(onExceeded).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2_000);
  for (const onExceeded of [onSilence, onWork]) {
    expect(onExceeded).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(error));
  }
});
