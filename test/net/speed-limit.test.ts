import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SpeedLimit, type SpeedShare } from "../../src/net/speed-limit.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const kB = 1_000;

/** Receives from `host` without an end, `connections` at a time; returns what counts the bytes. */
function receive(share: SpeedShare, host = "a.test", connections = 1, chunkBytes = 16 * kB) {
  const received = { bytes: 0 };
  const run = async () => {
    for (;;) {
      const bytes = await share.take(host, chunkBytes);
      received.bytes += bytes;
    }
  };
  for (let n = 0; n < connections; n += 1) void run();
  return received;
}

test.each([1_000, 300 * kB, 5_000 * kB])(
  "all shares together receive %i bytes per second, within 3 %% over 10 s",
  async (maxSpeedBps) => {
    const limit = new SpeedLimit({ maxSpeedBps, maxSpeedPerHostBps: 0 });
    const all = Array.from({ length: 6 }, (_, n) => receive(limit.open(), `${n % 2}.test`, n + 1));
    await vi.advanceTimersByTimeAsync(10_000);
    const bytes = all.reduce((sum, received) => sum + received.bytes, 0);
    expect(bytes / (10 * maxSpeedBps)).toBeGreaterThan(0.97);
    expect(bytes / (10 * maxSpeedBps)).toBeLessThan(1.03);
  },
);

test("a share with many connections gets no more than one with a single one", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 1_000 * kB, maxSpeedPerHostBps: 0 });
  const many = receive(limit.open(), "a.test", 12);
  const one = receive(limit.open(), "b.test", 1, 1_000);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(one.bytes / many.bytes).toBeGreaterThan(0.95);
  expect(one.bytes / many.bytes).toBeLessThan(1.05);
});

test("a slow host leaves the rest of the speed to the others", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 1_000 * kB, maxSpeedPerHostBps: 600 * kB });
  const slow = [receive(limit.open(), "a.test", 4), receive(limit.open(), "a.test", 4)];
  const other = receive(limit.open(), "b.test");
  await vi.advanceTimersByTimeAsync(10_000);
  expect((slow[0]!.bytes + slow[1]!.bytes + other.bytes) / (10_000 * kB)).toBeCloseTo(1, 1);
  expect((slow[0]!.bytes + slow[1]!.bytes) / (10 * 600 * kB)).toBeLessThan(1.03);
  expect(other.bytes).toBeGreaterThan(3_000 * kB);
});

test("one host is limited although there is no limit for all", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 0, maxSpeedPerHostBps: 100 * kB });
  const one = receive(limit.open(), "a.test");
  const other = receive(limit.open(), "b.test");
  await vi.advanceTimersByTimeAsync(10_000);
  for (const { bytes } of [one, other]) expect(Math.abs(bytes / (1_000 * kB) - 1)).toBeLessThan(0.03);
});

test("an idle limit saves up at most a second", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 100 * kB, maxSpeedPerHostBps: 0 });
  await vi.advanceTimersByTimeAsync(60_000);
  const received = receive(limit.open());
  await vi.advanceTimersByTimeAsync(1_000);
  expect(received.bytes).toBeLessThanOrEqual(200 * kB);
});

test("a share that was idle has no advance over the others", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 100 * kB, maxSpeedPerHostBps: 0 });
  const late = limit.open();
  const busy = receive(limit.open());
  await vi.advanceTimersByTimeAsync(60_000);
  const before = busy.bytes;
  const received = receive(late);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(received.bytes / (busy.bytes - before)).toBeCloseTo(1, 1);
});

test("what a closed share waits for goes to the others", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 100 * kB, maxSpeedPerHostBps: 0 });
  const closed = limit.open();
  const left = receive(closed, "a.test", 50);
  const stays = receive(limit.open());
  await vi.advanceTimersByTimeAsync(1_000);
  closed.close();
  closed.close();
  const before = [left.bytes, stays.bytes] as const;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(left.bytes).toBe(before[0]);
  expect((stays.bytes - before[1]) / (1_000 * kB)).toBeCloseTo(1, 1);
});

test("a share says whether it had to wait a moment ago", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 100 * kB, maxSpeedPerHostBps: 0 });
  const share = limit.open();
  expect(share.hasWaited()).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  await share.take("a.test", 100);
  expect(share.hasWaited()).toBe(false);
  void receive(share, "a.test", 30);
  expect(share.hasWaited()).toBe(true);
});

test("a share that waited before it was asked says so once", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 100 * kB, maxSpeedPerHostBps: 0 });
  const share = limit.open();
  void share.take("a.test", 1_000);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([share.hasWaited(), share.hasWaited()]).toEqual([true, false]);
});

test("without a limit everything is granted at once", async () => {
  const share = new SpeedLimit({ maxSpeedBps: 0, maxSpeedPerHostBps: 0 }).open();
  expect(await share.take("a.test", 1e9)).toBe(1e9);
  expect([share.hasWaited(), vi.getTimerCount()]).toEqual([false, 0]);
});

test("what was received is counted from the first measurement on: nobody else may ask for it", async () => {
  const limit = new SpeedLimit({ maxSpeedBps: 100 * kB, maxSpeedPerHostBps: 0 });
  const receiveOnce = async () => {
    const share = limit.open();
    const taken = share.take("a.test", 1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    await taken;
    share.close();
  };
  await receiveOnce();
  expect([...limit.measure().values()]).toEqual([]);
  await receiveOnce();
  expect([...limit.measure().values()]).toEqual([{ waiting: 0, others: 1, bps: 1_000 }]);
});
