import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DownloadProgress } from "../../src/engines/engine.ts";
import { createProgressReport } from "../../src/runner/progress.ts";
import type { Progress } from "../../src/model/progress.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Saved extends Progress {
  atMs: number;
  madeProgress: boolean;
}

function start(bytesBefore = 0, fails: (count: number) => boolean = () => false) {
  const saved: Saved[] = [];
  const startMs = Date.now();
  let count = 0;
  const report = createProgressReport({
    before: { downloaded_bytes: bytesBefore, total_bytes: null },
    async save(progress, madeProgress) {
      count += 1;
      if (fails(count)) throw new Error("no");
      saved.push({ ...progress, madeProgress, atMs: Date.now() - startMs });
    },
  });
  return { report, saved };
}

const at = (downloaded_bytes: number | null, total_bytes: number | null = null) =>
  ({ stage: "downloading", downloaded_bytes, total_bytes }) satisfies DownloadProgress;

test("frequent reports are saved twice a second, the newest each time", async () => {
  const { report, saved } = start();
  for (let ms = 0; ms < 1_999; ms += 1) {
    report.report(at(ms + 1));
    await vi.advanceTimersByTimeAsync(1);
  }
  expect(saved.map(({ atMs }) => atMs)).toEqual([0, 500, 1000, 1500]);
  expect(saved.map(({ downloaded_bytes }) => downloaded_bytes)).toEqual([1, 500, 1000, 1500]);
  expect(saved.map(({ madeProgress }) => madeProgress)).toEqual([true, false, false, false]);
});

test("a first report without bytes is not saved, as the run has saved that the download begins", async () => {
  const { report, saved } = start();
  report.report(at(0, 100));
  await vi.advanceTimersByTimeAsync(100);
  report.report(at(7, 100));
  await vi.advanceTimersByTimeAsync(500);
  expect(saved.map(({ downloaded_bytes, atMs }) => [downloaded_bytes, atMs])).toEqual([[7, 100]]);
});

test("a report that is too early is saved later", async () => {
  const { report, saved } = start();
  report.report(at(1));
  report.report(at(2));
  await vi.advanceTimersByTimeAsync(499);
  expect(saved).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(saved[1]).toMatchObject({ stage: "downloading", downloaded_bytes: 2, atMs: 500 });
});

test("there are at most four saves in a second, including those of the run", async () => {
  const { report, saved } = start();
  report.report(at(1));
  await vi.advanceTimersByTimeAsync(500);
  report.report(at(2));
  await vi.advanceTimersByTimeAsync(100);
  report.report({ ...at(3), stage: "processing" });
  await vi.advanceTimersByTimeAsync(399);
  expect(saved).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(saved[2]).toMatchObject({ stage: "processing", atMs: 1_000 });
});

test("the first report of a stage is saved at once", async () => {
  const { report, saved } = start();
  report.report(at(1));
  await vi.advanceTimersByTimeAsync(10);
  report.report({ ...at(2), stage: "processing" });
  await vi.advanceTimersByTimeAsync(1);
  expect(saved[1]).toMatchObject({ stage: "processing", downloaded_bytes: 2, atMs: 10 });
});

test("the first bytes beyond those of earlier runs are saved at once, as progress", async () => {
  const { report, saved } = start(100);
  report.report(at(90));
  await vi.advanceTimersByTimeAsync(10);
  report.report(at(100));
  report.report(at(101));
  await vi.advanceTimersByTimeAsync(10);
  report.report(at(102));
  await vi.advanceTimersByTimeAsync(600);
  expect(saved.map(({ downloaded_bytes, madeProgress }) => [downloaded_bytes, madeProgress])).toEqual([
    [101, true],
    [102, false],
  ]);
});

test("progress that could not be saved is saved with the next report", async () => {
  const { report, saved } = start(0, (count) => count === 1);
  report.report(at(1));
  await vi.advanceTimersByTimeAsync(0);
  report.report(at(2));
  await vi.advanceTimersByTimeAsync(0);
  expect(saved).toMatchObject([{ downloaded_bytes: 2, madeProgress: true }]);
});

test("speed and time left count the bytes since the first report", async () => {
  const { report, saved } = start();
  report.report(at(5_000_000, 6_000_000));
  for (let step = 1; step <= 4; step += 1) {
    await vi.advanceTimersByTimeAsync(500);
    report.report(at(5_000_000 + step * 50_000, 6_000_000));
  }
  expect(saved[0]).toMatchObject({ speed: null, eta: null });
  expect(saved.slice(1).map(({ speed }) => speed)).toEqual([100_000, 100_000, 100_000, 100_000]);
  expect(saved[4]).toMatchObject({ downloaded_bytes: 5_200_000, eta: 8 });
});

test("the speed follows changes smoothly, and falls to 0 if nothing arrives; then no time left is known", async () => {
  const { report, saved } = start();
  let bytes = 0;
  const pass = async (step: number) => {
    bytes += step;
    report.report(at(bytes, 1_000_000));
    await vi.advanceTimersByTimeAsync(500);
  };
  for (const step of [1, 500, 500, 500, 500, 500, 500, 1000]) await pass(step);
  const speeds = saved.map(({ speed }) => speed);
  expect(speeds.slice(0, 7)).toEqual([null, 1000, 1000, 1000, 1000, 1000, 1000]);
  expect(speeds[7]).toBeGreaterThan(1100);
  expect(speeds[7]).toBeLessThan(1300);
  for (let count = 0; count < 100; count += 1) await pass(0);
  expect(saved.at(-1)).toMatchObject({ speed: 0, eta: null });
});

test("a burst at the start makes neither the speed nor the time left wrong", async () => {
  const { report, saved } = start();
  report.report(at(0, 30_000_000));
  await vi.advanceTimersByTimeAsync(500);
  // Saved at once, as it is the first progress.
  await vi.advanceTimersByTimeAsync(20);
  let bytes = 240_000;
  report.report(at(bytes, 30_000_000));
  for (let step = 0; step < 20; step += 1) {
    await vi.advanceTimersByTimeAsync(500);
    report.report(at((bytes += 750_000), 30_000_000));
  }
  const speeds = saved.slice(2).map(({ speed }) => speed);
  expect(saved[1]).toMatchObject({ downloaded_bytes: 240_000, speed: null, eta: null });
  expect(Math.max(...speeds.map(Number))).toBeLessThan(2_000_000);
  expect(speeds[2]).toBeLessThan(1_700_000);
  expect(saved[2]?.eta).toBeGreaterThan(15);
});

test("fewer bytes and unknown numbers make no negative speed", async () => {
  const { report, saved } = start();
  for (const bytes of [1000, 10, null]) {
    report.report(at(bytes, 5));
    await vi.advanceTimersByTimeAsync(500);
  }
  expect(saved.slice(1)).toMatchObject([
    { speed: 0, eta: null },
    { speed: 0, eta: null, downloaded_bytes: null },
  ]);
});

test("close waits for the save in progress; nothing is saved afterwards", async () => {
  const gate = Promise.withResolvers<void>();
  const saved: number[] = [];
  const report = createProgressReport({
    before: null,
    async save({ downloaded_bytes }) {
      await gate.promise;
      saved.push(downloaded_bytes ?? 0);
    },
  });
  report.report(at(1));
  report.report(at(2));
  const closing = report.close().then(() => saved.push(-1));
  gate.resolve();
  await closing;
  report.report(at(3));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(saved).toEqual([1, -1]);
  expect(report.bytes).toBe(3);
});

test("what a download waits for is saved, and left out once it waits for nothing", async () => {
  const { report, saved } = start();
  report.report({ ...at(1), waiting_for: "host" });
  report.report(at(2));
  await vi.advanceTimersByTimeAsync(500);
  expect(saved.map(({ waiting_for }) => waiting_for)).toEqual(["host", undefined]);
});
