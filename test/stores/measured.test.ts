import { expect, test } from "vitest";
import { measureStore, storeMethods } from "../../src/stores/measured.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { toStoreError } from "../../src/stores/postgres/database-errors.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { describeTaskStore } from "../contracts/task-store.ts";

describeTaskStore("the memory store, measured as the service does it", (options) =>
  measureStore(createMemoryStore(options), () => {}),
);

/** Returns a measured store, and its calls as `method`, or `method failed`. */
function observed(maxQueued = 10) {
  const calls: string[] = [];
  const store = measureStore(createMemoryStore({ maxQueued }), (method, seconds, hasFailed) => {
    expect(seconds).toBeGreaterThanOrEqual(0);
    calls.push(hasFailed ? `${method} failed` : method);
  });
  return { store, calls };
}

const task = () => newTask("https://video.example.com/", {}, new Date());

test("each call is observed once, with its method", async () => {
  const { store, calls } = observed();
  const { id } = await store.create(task());
  await store.reuse(task());
  await store.get(id);
  await store.list({ limit: 1 });
  const claim = await store.claim({ leaseMs: 1_000 });
  await store.heartbeat(id, claim!.lease, 1_000);
  await store.update(id, { state: "failed" });
  const growing = { lease: "none", members: [], isReusing: false, growth: null };
  await Promise.allSettled([store.grow("unknown", growing), store.retryMembers("unknown", "none")]);
  await store.ownMembers(id);
  await store.storedFiles({ limit: 1 });
  await store.count();
  await store.ping();
  await store.delete(id);
  expect(calls.toSorted()).toEqual([...storeMethods].toSorted());
});

test("every method of a store but `close` is observed", () => {
  const { close: _, ...store } = createMemoryStore();
  const methods = Object.entries(store).flatMap(([name, member]) => (typeof member === "function" ? name : []));
  expect([...storeMethods].toSorted()).toEqual(methods.toSorted());
});

test("a refusal by the rules is no failure of the store", async () => {
  const { store, calls } = observed(0);
  await Promise.allSettled([store.create(task()), store.delete("unknown"), store.update("unknown", {})]);
  expect(calls.toSorted()).toEqual(["create", "delete", "update"]);
});

test("a call has failed if the database is unavailable", async () => {
  const calls: string[] = [];
  const store = createMemoryStore();
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  const unavailable = { ...store, ping: () => Promise.reject(toStoreError(refused)) };
  const measured = measureStore(unavailable, (method, _seconds, hasFailed) =>
    calls.push(hasFailed ? `${method} failed` : method),
  );
  await expect(measured.ping()).rejects.toMatchObject({ code: "unavailable" });
  expect(calls).toEqual(["ping failed"]);
});

test("a store that is unavailable has failed", async () => {
  const { store, calls } = observed();
  await store.close();
  await expect(store.ping()).rejects.toMatchObject({ code: "unavailable" });
  expect(calls).toEqual(["ping failed"]);
});
