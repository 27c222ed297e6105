import { describe, expect, test } from "vitest";
import { transitions, type State, states, type Task } from "../../../src/task.ts";
import { type OpenStore, startTrial, type StoreHarness } from "./harness.ts";

const progress = {
  stage: "downloading",
  downloaded_bytes: 5,
  total_bytes: null,
  speed: null,
  eta: null,
} as const;

export function describeMoves(open: OpenStore): void {
  describe("holds tasks to the table of moves:", () => {
    const pairs = states.flatMap((from) => states.map((to) => ({ from, to })));
    const allowed = pairs.filter(({ from, to }) => transitions[from].includes(to));
    const refused = pairs.filter(({ from, to }) => !transitions[from].includes(to));

    test.each(allowed)("a $from task may become $to", async ({ from, to }) => {
      const trial = await startTrial(open);
      const task = await moveTo(trial, from);
      const moved = await trial.store.update(task.id, { state: to });
      expect(moved).toMatchObject({ id: task.id, state: to });
      expect(await trial.store.get(task.id)).toEqual(moved);
      expect((await trial.store.list({ limit: 10, state: to })).tasks).toEqual([moved]);
      expect((await trial.store.list({ limit: 10, state: from })).tasks).toEqual([]);
    });

    test.each(refused)("a $from task cannot become $to", async ({ from, to }) => {
      const trial = await startTrial(open);
      const task = await moveTo(trial, from);
      trial.clock.advance(1000);
      const refusal = { name: "ServiceError", code: "conflict" };
      const change = { state: to, attempts: 9 };
      await expect(trial.store.update(task.id, change)).rejects.toMatchObject(refusal);
      expect(await trial.store.get(task.id)).toEqual(task);
      expect((await trial.store.list({ limit: 10, state: from })).tasks).toEqual([task]);
    });

    test("the times of a run and its progress follow the moves", async () => {
      const { store, clock, add } = await startTrial(open);
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

const ways: Readonly<Record<State, readonly State[]>> = {
  queued: [],
  running: ["running"],
  succeeded: ["running", "succeeded"],
  failed: ["running", "failed"],
  canceled: ["canceled"],
};

/** A task in the given state, got there by moves. */
export async function moveTo({ store, add }: StoreHarness, state: State): Promise<Task> {
  let task = await add();
  for (const step of ways[state]) task = await store.update(task.id, { state: step });
  return task;
}
