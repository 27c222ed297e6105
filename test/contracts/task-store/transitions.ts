import { describe, expect, test } from "vitest";
import { transitions, type State, states, type Task } from "../../../src/model/task.ts";
import { minuteMs, type OpenStore, openStoreHarness, type StoreHarness } from "./harness.ts";

const progress = {
  stage: "downloading",
  downloaded_bytes: 5,
  total_bytes: null,
  speed: null,
  eta: null,
} as const;

export function describeTransitions(open: OpenStore): void {
  describe("holds tasks to the table of transitions:", () => {
    const pairs = states.flatMap((from) => states.map((to) => ({ from, to })));
    const allowed = pairs.filter(({ from, to }) => transitions[from].includes(to));
    const forbidden = pairs.filter(({ from, to }) => !transitions[from].includes(to));

    test.each(allowed)("a $from task may become $to", async ({ from, to }) => {
      const harness = await openStoreHarness(open);
      const task = await moveTo(harness, from);
      const moved = await harness.store.update(task.id, { state: to });
      expect(moved).toMatchObject({ id: task.id, state: to });
      expect(await harness.store.get(task.id)).toEqual(moved);
      expect((await harness.store.list({ limit: 10, state: to })).tasks).toEqual([moved]);
      expect((await harness.store.list({ limit: 10, state: from })).tasks).toEqual([]);
    });

    test.each(forbidden)("a $from task cannot become $to", async ({ from, to }) => {
      const harness = await openStoreHarness(open);
      const task = await moveTo(harness, from);
      harness.clock.advance(1000);
      const refusal = { name: "ServiceError", code: "conflict" };
      const change = { state: to, attempts: 9 };
      await expect(harness.store.update(task.id, change)).rejects.toMatchObject(refusal);
      expect(await harness.store.get(task.id)).toEqual(task);
      expect((await harness.store.list({ limit: 10, state: from })).tasks).toEqual([task]);
    });

    test("an update may name the states that it expects", async () => {
      const { store, add } = await openStoreHarness(open);
      const { id } = await add();
      const refused = store.update(id, { attempts: 9 }, { from: ["failed", "canceled"] });
      await expect(refused).rejects.toMatchObject({
        name: "ServiceError",
        code: "conflict",
        message: `the state of task ${id} is queued; it must be failed or canceled`,
      });
      await expect(store.update(id, { attempts: 9 }, { from: [] })).rejects.toThrow("is queued");
      expect(await store.get(id)).toMatchObject({ attempts: 0 });
      const changed = await store.update(id, { attempts: 1 }, { from: ["failed", "queued"] });
      expect(changed).toMatchObject({ attempts: 1 });
    });

    test("an expected state does not permit a transition that the table forbids", async () => {
      const harness = await openStoreHarness(open);
      const { id } = await moveTo(harness, "succeeded");
      const refused = harness.store.update(id, { state: "queued" }, { from: ["succeeded"] });
      await expect(refused).rejects.toThrow("has already succeeded and cannot be queued");
    });

    test("of many concurrent retries one succeeds, and none requeues its run", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await moveTo(harness, "failed");
      const retry = () => store.update(id, { state: "queued" }, { from: ["failed", "canceled"] });
      const outcomes = await Promise.allSettled([retry(), retry(), store.claim({ leaseMs: minuteMs }), retry()]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
      await store.claim({ leaseMs: minuteMs });
      await expect(retry()).rejects.toMatchObject({ code: "conflict" });
      expect(await store.get(id)).toMatchObject({ state: "running" });
    });

    test("the times of a run and its progress follow the state", async () => {
      const { store, clock, add } = await openStoreHarness(open);
      const { id } = await add();
      clock.advance(1000);
      const startedAt = clock.now().toISOString();
      await store.update(id, { state: "running" });
      await store.update(id, { progress });
      expect(await store.get(id)).toMatchObject({ started_at: startedAt, progress });
      clock.advance(1000);
      expect(await store.update(id, { state: "succeeded" })).toMatchObject({
        started_at: startedAt,
        finished_at: clock.now().toISOString(),
        progress: null,
      });
    });
  });
}

const paths: Readonly<Record<State, readonly State[]>> = {
  queued: [],
  running: ["running"],
  succeeded: ["running", "succeeded"],
  failed: ["running", "failed"],
  canceled: ["canceled"],
};

/** Creates a task and brings it into the given state. */
export async function moveTo({ store, add }: StoreHarness, state: State): Promise<Task> {
  let task = await add();
  for (const step of paths[state]) task = await store.update(task.id, { state: step });
  return task;
}
