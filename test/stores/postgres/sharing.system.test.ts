import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/postgres-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { buildApp } from "../../http/app.ts";
import { accessKeyOf, newSecret } from "../../../src/keys/secrets.ts";
import type { State, Task } from "../../../src/model/task.ts";
import { noTasks } from "../../../src/feed/collection-changes.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { idsOf, minuteMs, times } from "../../contracts/task-store/harness.ts";
import { openDatabase } from "../../postgres/database.ts";
import { query } from "./query.ts";

describe("two processes with one database", () => {
  test("never claim the same task, and claim all of them", async () => {
    const { first, second } = await openTwo();
    const created = await Promise.all(times(150, () => add(first)));
    const claims = await Promise.all(times(200, (n) => (n % 2 ? first : second).claim({ leaseMs: minuteMs })));
    const claimed = claims.filter((claim) => claim !== undefined);
    const ids = claimed.map(({ task }) => task.id);
    expect(ids.toSorted()).toEqual(idsOf(created).toSorted());
    expect(new Set(claimed.map(({ lease }) => lease)).size).toBe(150);
  });

  test("claim the oldest task first, whichever of them stored it", async () => {
    const { first, second } = await openTwo();
    const created: Task[] = [];
    for (const n of times(20, (each) => each)) created.push(await add(n % 3 ? first : second));
    const claimed: string[] = [];
    for (const n of times(20, (each) => each)) {
      const claim = await (n % 2 ? first : second).claim({ leaseMs: minuteMs });
      claimed.push(claim?.task.id ?? "");
    }
    expect(claimed).toEqual(idsOf(created));
    expect(idsOf((await second.list({ limit: 50 })).tasks)).toEqual(idsOf(created).toReversed());
  });

  test("store one task for one key, however many concurrent requests both get", async () => {
    const { first, second } = await openTwo();
    const key = { key: "key", fingerprint: "f" };
    const created = await Promise.all(times(60, (n) => add(n % 2 ? first : second, key)));
    expect(new Set(idsOf(created)).size).toBe(1);
    expect(idsOf((await first.list({ limit: 9 })).tasks)).toEqual([created[0]?.id]);
  });

  test("share the limit of the queue exactly", async () => {
    const { first, second } = await openTwo({ maxQueued: 50 });
    const outcomes = await Promise.allSettled(times(120, (n) => add(n % 2 ? first : second)));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(50);
    expect((await first.list({ limit: 200 })).tasks).toHaveLength(50);
    await second.claim({ leaseMs: minuteMs });
    await add(first);
    await expect(add(second)).rejects.toMatchObject({ code: "unavailable" });
  });

  test("run no more tasks of an owner than its key allows, however many claim at once", async () => {
    const { first, second } = await openTwo();
    const limits = { max_running: 3 };
    await first.keys.add(accessKeyOf(newSecret(), { name: "anna", admin: false, limits }, new Date()));
    await Promise.all(times(50, () => add(first, undefined, "anna")));
    for (let round = 0; round < 5; round += 1) {
      const claims = await Promise.all(times(20, (n) => (n % 2 ? first : second).claim({ leaseMs: minuteMs })));
      const claimed = claims.filter((claim) => claim !== undefined);
      expect(claimed).toHaveLength(3);
      await Promise.all(claimed.map(({ task }) => first.update(task.id, { state: "succeeded" })));
    }
  });

  test("claim from no other owner while the only task of the one whose turn it is is being claimed", async () => {
    const { url, first, second } = await openTwo();
    await Promise.all(times(3, () => add(first, undefined, "anna")));
    await first.claim({ leaseMs: minuteMs });
    const his = await add(first, undefined, "bert");
    const client = new Client({ connectionString: url });
    onTestFinished(() => client.end());
    await client.connect();
    // As a claim begins; this one will fail.
    await client.query("BEGIN");
    await client.query(
      "SELECT FROM unreel_jobs.job WHERE id = (SELECT job FROM unreel.tasks WHERE id = $1) FOR UPDATE",
      [his.id],
    );
    const claims = [first, second].map((store) => store.claim({ leaseMs: minuteMs }));
    await haveLockWaiters(url, 2);
    await client.query("ROLLBACK");
    const owners = (await Promise.all(claims)).map((claim) => claim?.task.owner);
    expect(new Set(owners)).toEqual(new Set(["anna", "bert"]));
  });

  test("do not let one owner's tasks that may exist wait for another one's", async () => {
    const { url, first } = await openTwo();
    const reuse = async (owner: string) => {
      const { task } = await first.reuse(newTask("https://video.example.com/1", {}, new Date(), owner));
      return task.owner;
    };
    const client = new Client({ connectionString: url });
    onTestFinished(() => client.end());
    await client.connect();
    // As long as a large collection of the owner is changed.
    await client.query("SELECT pg_advisory_lock(726198345, hashtext('anna'))");
    const waiting = times(3, () => reuse("anna"));
    await haveLockWaiters(url, 1);
    expect(await reuse("bert")).toBe("bert");
    await haveLockWaiters(url, 1);
    await client.query("SELECT pg_advisory_unlock_all()");
    expect(await Promise.all(waiting)).toEqual(["anna", "anna", "anna"]);
  });

  test("let exactly as many tasks of an owner wait as its key allows", async () => {
    const { first, second } = await openTwo();
    const limits = { max_queued: 20 };
    await first.keys.add(accessKeyOf(newSecret(), { name: "anna", admin: false, limits }, new Date()));
    const outcomes = await Promise.allSettled(times(50, (n) => add(n % 2 ? first : second, undefined, "anna")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(20);
    await Promise.all(times(5, () => first.claim({ leaseMs: minuteMs })));
    const more = await Promise.allSettled(times(50, (n) => add(n % 2 ? first : second, undefined, "anna")));
    expect(more.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
  });

  test("count tasks that a process of an earlier release has stored, once one is opened", async () => {
    const { url, first } = await openTwo();
    await add(first);
    await query(url, "DELETE FROM unreel.owners");
    const third = await openStore(url);
    await query(url, "UPDATE unreel.owners SET queued = queued - 1");
    expect(await third.claim({ leaseMs: minuteMs })).toBeDefined();
  });

  test("tell how many tasks there are while a process of an earlier release changes some, and after", async () => {
    const { url, first } = await openTwo();
    const { id } = await add(first);
    await add(first);
    await query(url, "UPDATE unreel.tasks SET state = 'failed', job = NULL WHERE id = $1", [id]);
    await query(url, "UPDATE unreel.counters SET events = events + 1, queued = queued - 1");
    expect((await first.count()).byState).toMatchObject({ queued: 1, failed: 1 });
    await openStore(url);
    await first.delete(id);
    expect((await first.count()).byState).toMatchObject({ queued: 1, failed: 0 });
  });

  test("accept each other's leases", async () => {
    const { first, second } = await openTwo();
    const { id } = await add(first);
    const { lease = "" } = (await second.claim({ leaseMs: minuteMs })) ?? {};
    expect(await first.heartbeat(id, lease, minuteMs)).toBe(true);
    await first.update(id, { state: "canceled" });
    expect(await second.heartbeat(id, lease, minuteMs)).toBe(false);
    const late = second.update(id, { attempts: 2 }, { lease });
    await expect(late).rejects.toMatchObject({ code: "conflict" });
  });

  test("publish each other's changes in the order in which they took effect", async () => {
    const url = await openDatabase();
    const [first, second] = [await openStore(url), await openStore(url)];
    const received: string[] = [];
    const isOver = Promise.withResolvers<void>();
    second.events.subscribe(({ type, taskId, state }) => {
      received.push(`${taskId} ${state ?? type}`);
      if (type === "deleted") isOver.resolve();
    });
    const { id } = await add(first);
    await second.claim({ leaseMs: minuteMs });
    await first.update(id, { state: "failed" });
    await second.delete(id);
    await isOver.promise;
    expect(received).toEqual([`${id} queued`, `${id} running`, `${id} failed`, `${id} deleted`]);
  });

  test("can be opened at the same time on an empty database", async () => {
    const url = await openDatabase();
    const [first, second] = await Promise.all(times(4, () => openStore(url)));
    const { id } = await add(first!);
    expect((await second?.get(id))?.id).toBe(id);
  });

  test("queue a task once for two retries, and do not requeue its run", async () => {
    const { first, second } = await openTwo();
    const apps = [await buildApp({ store: first }), await buildApp({ store: second })];
    onTestFinished(async () => {
      for (const app of apps) await app.close();
    });
    const { id } = await add(first);
    const retryAll = () => Promise.all(apps.map((app) => app.inject({ method: "POST", url: `/tasks/${id}/retry` })));
    for (const attempts of times(5, (n) => n)) {
      await first.update(id, { state: "canceled" });
      const statuses = (await retryAll()).map(({ statusCode }) => statusCode);
      expect(
        statuses.toSorted((a, b) => a - b),
        `round ${attempts}`,
      ).toEqual([200, 409]);
      await second.claim({ leaseMs: minuteMs });
      const late = await retryAll();
      expect(late.map(({ statusCode }) => statusCode)).toEqual([409, 409]);
      expect(late[0]?.json().detail).toContain("is running;");
      expect(await first.get(id)).toMatchObject({ state: "running", attempts: 1 });
    }
    await second.update(id, { state: "succeeded" });
    for (const app of apps) {
      const cancel = await app.inject({ method: "POST", url: `/tasks/${id}/cancel` });
      expect(cancel.statusCode).toBe(409);
    }
  });

  test("keep one job for each queued or claimed task, and none for others", async () => {
    const { url, first, second } = await openTwo();
    const stores = [first, second];
    const created = await Promise.all(
      times(40, (n) => add(stores[n % 2]!, undefined, [undefined, "anna", "bert"][n % 3])),
    );
    const moves = ["canceled", "queued", "running", "failed", "queued", "succeeded"] as const;
    // Some of these transitions are refused.
    await Promise.allSettled([
      ...created.flatMap(({ id }, n) =>
        times(4, (k) => stores[k % 2]!.update(id, { state: moves[(n + k) % moves.length]! })),
      ),
      ...times(30, (n) => stores[n % 2]!.claim({ leaseMs: minuteMs })),
      ...created.slice(30).map(({ id }, n) => stores[n % 2]!.delete(id)),
    ]);
    const strays = await query(
      url,
      `SELECT tasks.id, tasks.state, tasks.job, jobs.id AS stray
       FROM unreel.tasks FULL JOIN unreel_jobs.job AS jobs ON jobs.id = tasks.job
       WHERE (tasks.job IS NULL) <> (jobs.id IS NULL)
         OR (tasks.job IS NULL AND tasks.state = 'queued')
         OR (tasks.job IS NOT NULL AND tasks.state NOT IN ('queued', 'running'))
         OR jobs.data ->> 'id' <> tasks.id`,
    );
    expect(strays).toEqual([]);
    const rows = await query<{ state: State; tasks: number }>(
      url,
      "SELECT state, count(*)::int AS tasks FROM unreel.tasks GROUP BY state",
    );
    const { byState } = await first.count();
    const really = Object.fromEntries(rows.map(({ state, tasks }) => [state, tasks]));
    expect(byState).toEqual({ ...noTasks, ...really });
    const miscounted = await query(
      url,
      `SELECT owner FROM unreel.owners
       WHERE queued <> (SELECT count(*) FROM unreel.tasks
           WHERE coalesce(tasks.owner, '') = owners.owner AND state = 'queued')
         OR running <> (SELECT count(*) FROM unreel.tasks
           WHERE coalesce(tasks.owner, '') = owners.owner AND state = 'running')`,
    );
    expect(miscounted).toEqual([]);
  });
});

async function openTwo(options: Omit<PostgresStoreOptions, "url"> = {}) {
  const url = await openDatabase();
  const [first, second] = [await openStore(url, options), await openStore(url, options)];
  return { url, first, second };
}

async function openStore(url: string, options: Omit<PostgresStoreOptions, "url"> = {}) {
  const store = await openPostgresStore({ heartbeatS: 600, ...options, url });
  onTestFinished(() => store.close());
  return store;
}

/** Resolves once so many statements of stores wait for a lock. */
async function haveLockWaiters(url: string, count: number): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'unreel' AND wait_event_type = 'Lock'`;
  await expect.poll(() => query(url, waiting)).toHaveLength(count);
}

function add(store: TaskStore, idempotency?: { key: string; fingerprint: string }, owner?: string): Promise<Task> {
  return store.create(newTask("https://video.example.com/", {}, new Date(), owner), idempotency);
}
