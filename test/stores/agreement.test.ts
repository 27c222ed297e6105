import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createMemoryStore, openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { states, type Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createTestClock, type Clock } from "../contracts/task-store/harness.ts";
import { makeFolder } from "../folder.ts";
import { seed } from "../random.ts";

const hosts = ["a.test", "b.test", "c.test"];
const host = fc.constantFrom(...hosts);
const owner = fc.constantFrom("anna", "bert", undefined);
const state = fc.constantFrom(...states);
const nth = fc.nat({ max: 6 });
/** Low, so that it is reached. */
const maxQueued = 5;
const shortMs = fc.integer({ min: 1, max: 50 });

const call = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("create" as const), host, owner }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      exceptHosts: fc.subarray(hosts),
      exceptOwners: fc.subarray(["", "anna", "bert"], { maxLength: 2 }),
      leaseMs: shortMs,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("update" as const),
      nth,
      state: fc.option(state, { nil: undefined }),
      waitMs: fc.option(shortMs, { nil: undefined }),
      from: fc.option(fc.subarray([...states]), { nil: undefined }),
      isFenced: fc.boolean(),
      stalledCount: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("heartbeat" as const), nth, leaseMs: shortMs }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("list" as const),
      limit: fc.integer({ min: 1, max: 4 }),
      state: fc.option(state, { nil: undefined }),
      owner,
      before: fc.option(fc.nat({ max: 12 }), { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: shortMs }) },
  // All leases have expired by then, as those have of a store that is opened.
  { weight: 2, arbitrary: fc.record({ do: fc.constant("reopen" as const), ms: fc.constant(50) }) },
);
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

test("a store that is opened again between calls responds and publishes as one that stays open, whatever the calls are", async () => {
  const folder = makeFolder();
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 60, size: "max" }), async (calls) => {
      count += 1;
      const path = join(folder, `${count}.db`);
      const inMemory = await run(calls, (now) => createMemoryStore({ now, maxQueued }));
      const inFile = await run(calls, (now) => openSqliteStore({ path, now, maxQueued }), true);
      expect(inFile).toEqual(inMemory);
    }),
    { numRuns: 40, seed },
  );
});

/** Returns what a store responds and publishes, with ids and errors replaced so that all stores are alike. */
async function run(calls: readonly Call[], open: (now: Clock["now"]) => TaskStore, isReopened = false) {
  const clock = createTestClock();
  const openAndRecord = () => {
    const opened = open(clock.now);
    opened.events.subscribe(({ id: _id, ...event }) => record(event));
    return opened;
  };
  const ids: string[] = [];
  const leases = new Map<string, string>();
  const responses: unknown[] = [];
  let store = openAndRecord();
  for (const made of calls) {
    const response = await perform(made, { store, clock, ids, leases }).catch(codeOf);
    record(response);
    if (made.do !== "reopen" || !isReopened) continue;
    await store.close();
    store = openAndRecord();
  }
  await store.close();
  return responses;

  function record(value: unknown): void {
    responses.push(JSON.stringify(value).replaceAll(/[0-9a-f-]{36}/g, (id) => `#${ids.indexOf(id)}`));
  }
}

interface Context {
  store: TaskStore;
  clock: Clock;
  ids: string[];
  leases: Map<string, string>;
}

async function perform(made: Call, { store, clock, ids, leases }: Context): Promise<unknown> {
  const id = "nth" in made ? (ids[made.nth] ?? "unknown") : "unknown";
  const lease = leases.get(id) ?? "none";
  switch (made.do) {
    case "create": {
      const task: Task = newTask(`https://${made.host}/`, {}, clock.now(), made.owner);
      ids.push(task.id);
      return store.create(task);
    }
    case "claim": {
      const claim = await store.claim(made);
      if (claim !== undefined) leases.set(claim.task.id, claim.lease);
      return claim ? { task: claim.task, stalledCount: claim.stalledCount } : null;
    }
    case "update": {
      const runAfter = made.waitMs && new Date(clock.now().getTime() + made.waitMs);
      const change = made.state === undefined ? { attempts: 3 } : { state: made.state };
      return store.update(id, change, {
        ...(made.isFenced && { lease }),
        ...(made.from && { from: made.from }),
        stalledCount: made.stalledCount,
        ...(runAfter && { runAfter }),
      });
    }
    case "delete":
      return store.delete(id);
    case "heartbeat":
      return store.heartbeat(id, lease, made.leaseMs);
    case "list": {
      const { limit, state: only, owner: whose, before } = made;
      return store.list({ limit, state: only, owner: whose, ...(before && { before }) });
    }
    case "wait":
    case "reopen":
      break;
  }
  clock.advance(made.ms);
  return made.ms;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : error;
}
