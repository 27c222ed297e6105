import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { minuteMs, type OpenStore, openStoreHarness } from "./harness.ts";

const twoDaysMs = 2 * 24 * 60 * minuteMs;
const jumps = [
  ["forward", twoDaysMs],
  ["back", -twoDaysMs],
] as const;

export function describeClock(open: OpenStore): void {
  const { slackMs = 0 } = open;

  describe("measures time by a clock that nobody sets:", () => {
    test.each(jumps)("a clock set two days %s does not end a lease", async (_way, ms) => {
      const { store, clock, add, claim, expireLeases } = await openStoreHarness(open);
      const { id } = await add();
      const { lease } = await claim();
      clock.jump(ms);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      expect(await store.heartbeat(id, lease, minuteMs)).toBe(true);
      clock.jump(ms);
      expireLeases();
      expect(await claim()).toMatchObject({ task: { id, attempts: 1 } });
    });

    test.each(jumps)("a clock set two days %s does not change a delay", async (_way, ms) => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      await claim();
      const runAfter = new Date(clock.now().getTime() + minuteMs);
      await store.update(id, { state: "queued" }, { runAfter });
      clock.jump(ms);
      clock.advance(minuteMs - 1);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      clock.advance(1 + slackMs);
      expect((await claim()).task.id).toBe(id);
    });

    test("a delay is at most a day", async () => {
      const { store, clock, add, claim } = await openStoreHarness(open);
      const { id } = await add();
      await claim();
      const runAfter = new Date(clock.now().getTime() + twoDaysMs);
      await store.update(id, { state: "queued" }, { runAfter });
      clock.advance(twoDaysMs / 2);
      expect((await claim()).task.id).toBe(id);
    });

    test.each(jumps)("a clock set two days %s keeps an idempotency key", async (_way, ms) => {
      const { store, clock } = await openStoreHarness(open);
      const idempotency = { key: "key", fingerprint: "f" };
      const page = "https://video.example.com/";
      const task = await store.create(newTask(page, {}, clock.now()), idempotency);
      clock.jump(ms);
      expect(await store.create(newTask(page, {}, clock.now()), idempotency)).toEqual(task);
      clock.advance(twoDaysMs / 2);
      const later = newTask(page, {}, clock.now());
      expect(await store.create(later, idempotency)).toEqual(later);
    });
  });
}
