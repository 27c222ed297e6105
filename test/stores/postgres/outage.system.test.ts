import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import type { Task } from "../../../src/model/task.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { minuteMs, times } from "../../contracts/task-store/harness.ts";
import { startCuttingProxy } from "../../postgres/cutting-proxy.ts";
import { openDatabase, startOwnPostgres } from "../../postgres/database.ts";
import { query } from "./query.ts";

const unavailable = { name: "ServiceError", code: "unavailable" };

test("killing connections loses nothing that was acknowledged", async () => {
  const url = await openDatabase();
  const store = await openStore(url);
  const acknowledged: Task[] = [];
  for (const round of times(5, (n) => n)) {
    const outcomes = Promise.allSettled(times(200, () => add(store)));
    const claims = Promise.allSettled(times(20, () => store.claim({ leaseMs: minuteMs })));
    await query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unreel' AND datname = current_database()",
    );
    for (const outcome of await outcomes) {
      if (outcome.status === "fulfilled") acknowledged.push(outcome.value);
      else expect(outcome.reason, `round ${round}`).toMatchObject(unavailable);
    }
    for (const claim of await claims) {
      if (claim.status === "rejected") expect(claim.reason).toMatchObject(unavailable);
    }
  }
  acknowledged.push(await add(store));
  const found = await Promise.all(acknowledged.map(({ id }) => store.get(id)));
  expect(found).not.toContain(undefined);
});

test("a store works again after its database has restarted", async () => {
  const server = await startOwnPostgres();
  const store = await openStore(server.url());
  const task = await add(store);
  await server.restart();
  const outcomes = await Promise.allSettled(times(30, () => store.get(task.id)));
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") expect(outcome.reason).toMatchObject(unavailable);
  }
  expect(await store.get(task.id)).toEqual(task);
  expect((await store.claim({ leaseMs: minuteMs }))?.task.id).toBe(task.id);
});

test("every call is refused while the network is cut, and works afterwards", async () => {
  const url = await openDatabase();
  await using proxy = await startCuttingProxy(url);
  const store = await openStore(proxy.url(new URL(url).pathname.slice(1)));
  const { id } = await add(store);
  const { lease = "" } = (await store.claim({ leaseMs: minuteMs })) ?? {};
  proxy.cut();
  const calls = [
    () => add(store),
    () => store.get(id),
    () => store.list({ limit: 1 }),
    () => store.update(id, { attempts: 2 }),
    () => store.delete(id),
    () => store.claim({ leaseMs: minuteMs }),
    () => store.heartbeat(id, lease, minuteMs),
    () => store.ping(),
  ];
  for (const call of calls) await expect(call()).rejects.toMatchObject(unavailable);
  proxy.restore();
  expect(await store.heartbeat(id, lease, minuteMs)).toBe(true);
  await store.ping();
  await add(store);
});

test("an invalid task does not fail the tasks that arrive with it", async () => {
  const store = await openStore(await openDatabase());
  const task = newTask("https://video.example.com/", {}, new Date());
  const outcomes = await Promise.allSettled([add(store), add(store), store.create({ ...task, id: "\0" }), add(store)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
  expect((await store.list({ limit: 9 })).tasks).toHaveLength(3);
  expect(await store.get("\0")).toBeUndefined();
});

test("tasks that wait for a stalled insert are refused with it", async () => {
  const url = await openDatabase();
  await using proxy = await startCuttingProxy(url);
  const store = await openStore(proxy.url(new URL(url).pathname.slice(1)));
  await add(store);
  proxy.stall();
  const outcomes = await Promise.allSettled(times(400, () => add(store)));
  proxy.restore();
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  // Seven batches with a timeout each would take longer.
});

test("a task's lease lasts as long as the heartbeat interval was when it was queued", async () => {
  const url = await openDatabase();
  const earlier = await openPostgresStore({ url, heartbeatS: 10 });
  await add(earlier);
  await earlier.close();
  const store = await openPostgresStore({ url, heartbeatS: 60 });
  onTestFinished(() => store.close());
  await add(store);
  expect((await store.claim({ leaseMs: minuteMs }))?.leaseMs).toBe(10_000);
  expect((await store.claim({ leaseMs: minuteMs }))?.leaseMs).toBe(60_000);
});

async function openStore(url: string): Promise<TaskStore> {
  const store = await openPostgresStore({ url, heartbeatS: 600 });
  onTestFinished(() => store.close());
  return store;
}

function add(store: TaskStore): Promise<Task> {
  return store.create(newTask("https://video.example.com/", {}, new Date()));
}
