import { onTestFinished } from "vitest";
import type { Task, TaskOptions } from "../../../src/task.ts";
import { newTask } from "../../../src/task-changes.ts";
import type { Claim, TaskStore } from "../../../src/stores/store.ts";

export interface OpenStore {
  (now: () => Date, maxQueued?: number): TaskStore | Promise<TaskStore>;
  /** How late it may notice that a lease of a minute has run out; default 0. */
  slackMs?: number;
}

export interface StoreHarness {
  store: TaskStore;
  clock: Clock;
  /** Stores a new task for a page. */
  add: (url?: string, options?: TaskOptions) => Promise<Task>;
  /** Claims with a lease of a minute; fails the test where there is nothing to claim. */
  claim: () => Promise<Claim>;
  /** Lets leases of a minute run out, and be noticed. */
  lapse: () => void;
}

export interface Clock {
  now: () => Date;
  advance: (ms: number) => void;
}

export const minuteMs = 60_000;

/** A store for one test, closed behind it, and the clock that it goes by. */
export async function startTrial(open: OpenStore, maxQueued = 10_000): Promise<StoreHarness> {
  const clock = createClock();
  const store = await open(clock.now, maxQueued);
  onTestFinished(() => store.close());
  return {
    store,
    clock,
    add: (url = "https://video.example.com/watch", options = {}) =>
      store.create(newTask(url, options, clock.now())),
    async claim() {
      const claim = await store.claim({ leaseMs: minuteMs });
      if (claim === undefined) throw new Error("there is nothing to claim");
      return claim;
    },
    lapse: () => clock.advance(minuteMs + (open.slackMs ?? 0)),
  };
}

export function createClock(startMs = Date.UTC(2030, 0, 1)): Clock {
  let nowMs = startMs;
  return {
    now: () => new Date(nowMs),
    advance(ms) {
      nowMs += ms;
    },
  };
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export function idsOf(tasks: readonly Task[]): string[] {
  return tasks.map(({ id }) => id);
}
