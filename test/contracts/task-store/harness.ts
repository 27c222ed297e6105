import { onTestFinished } from "vitest";
import type { Task, TaskOptions } from "../../../src/model/task.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import type { Claim, StoreOptions, TaskStore } from "../../../src/stores/store.ts";
import type { TaskEvent } from "../../../src/feed/task-events.ts";

type StoreLimits = Pick<StoreOptions, "maxQueued" | "maxKeptBytes" | "webhook">;

export interface OpenStore {
  (options: StoreLimits & Pick<Clock, "now" | "elapsedMs">): TaskStore | Promise<TaskStore>;
  /** Replaces stored documents without the store, the last that was opened, and opens it again. */
  replaceDocuments?: (store: TaskStore, documents: Map<string, string>) => Promise<ReplacedStore>;
  /** How late the store may notice that a lease of a minute has expired; default 0. */
  slackMs?: number;
}

interface ReplacedStore {
  store: TaskStore;
  /** The lines that it logs. */
  log: object[];
}

export interface StoreHarness {
  store: TaskStore;
  clock: Clock;
  /** Stores a new task for a page. */
  add: (url?: string, options?: TaskOptions, owner?: string) => Promise<Task>;
  /** Claims with a lease of a minute; fails the test if there is nothing to claim. */
  claim: () => Promise<Claim>;
  /** Lets leases of a minute expire, and lets the store notice. */
  expireLeases: () => void;
}

export interface Clock {
  now: () => Date;
  elapsedMs: () => number;
  /** Lets time pass. */
  advance: (ms: number) => void;
  /** Sets `now` forward or back by this much. */
  jump: (ms: number) => void;
}

export const minuteMs = 60_000;

/** Opens a store for one test, closed after it, and creates its clock. */
export async function openStoreHarness(open: OpenStore, limits: StoreLimits = {}): Promise<StoreHarness> {
  const clock = createTestClock();
  const store = await open({ maxQueued: 10_000, ...limits, now: clock.now, elapsedMs: clock.elapsedMs });
  onTestFinished(() => store.close());
  return {
    store,
    clock,
    add: (url = "https://video.example.com/watch", options = {}, owner) =>
      store.create(newTask(url, options, clock.now(), owner)),
    async claim() {
      const claim = await store.claim({ leaseMs: minuteMs });
      if (claim === undefined) throw new Error("there is nothing to claim");
      return claim;
    },
    expireLeases: () => clock.advance(minuteMs + (open.slackMs ?? 0)),
  };
}

export function createTestClock(startMs = Date.UTC(2030, 0, 1)): Clock {
  let elapsedMs = 0;
  let setMs = startMs;
  return {
    now: () => new Date(setMs + elapsedMs),
    elapsedMs: () => elapsedMs,
    advance(ms) {
      elapsedMs += ms;
    },
    jump(ms) {
      setMs += ms;
    },
  };
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export function idsOf(tasks: readonly Task[]): string[] {
  return tasks.map(({ id }) => id);
}

/** Collects the events of a store; `take` resolves once that many have arrived. */
export function collectEvents({ events }: TaskStore) {
  const seen: TaskEvent[] = [];
  let onEvent = () => {};
  events.subscribe((event) => {
    seen.push(event);
    onEvent();
  });
  return {
    async take(count: number): Promise<readonly TaskEvent[]> {
      while (seen.length < count) await new Promise<void>((resolve) => (onEvent = resolve));
      return seen.slice(0, count);
    },
    /** Returns all events, once `isLast` is true of the newest. */
    async takeUntil(isLast: (event: TaskEvent) => boolean): Promise<readonly TaskEvent[]> {
      while (!seen.slice(-1).some(isLast)) await new Promise<void>((resolve) => (onEvent = resolve));
      return [...seen];
    },
  };
}
