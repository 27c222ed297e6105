import { expect, it, vi } from "vitest";
import { createTimelyRead } from "../../src/metrics/metrics.ts";

/** Returns a timely read whose reads the test ends, and the number of its reads. */
function createRead() {
  const reads: PromiseWithResolvers<number>[] = [];
  const read = createTimelyRead(() => {
    const next = Promise.withResolvers<number>();
    reads.push(next);
    return next.promise;
  });
  return { reads, read };
}

it("waits for the first result, which is shared and kept for some seconds", async () => {
  const { reads, read } = createRead();
  const both = Promise.all([read(), read()]);
  reads[0]!.resolve(1);
  expect(await both).toEqual([1, 1]);
  expect(await read()).toBe(1);
  expect(reads).toHaveLength(1);
});

it("returns nothing after a read that failed", async () => {
  const { reads, read } = createRead();
  const result = read();
  reads[0]!.reject(new Error("x"));
  expect(await result).toBeUndefined();
});

it("reads again later; a read that never ends holds up nobody", async () => {
  vi.useFakeTimers();
  try {
    const { reads, read } = createRead();
    const first = read();
    reads[0]!.resolve(1);
    expect(await first).toBe(1);
    await vi.advanceTimersByTimeAsync(60_000);
    for (const _ of [1, 2]) {
      const waiting = read();
      await vi.advanceTimersByTimeAsync(10);
      expect(await waiting).toBe(1);
    }
    expect(reads).toHaveLength(2);
    reads[1]!.resolve(2);
    expect(await read()).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});
