import { expect, onTestFinished, test } from "vitest";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { createTestClock, minuteMs } from "../contracts/task-store/harness.ts";
import { openDatabase } from "../postgres/database.ts";
import { addKey } from "./keys.ts";
import { openApp } from "./open-app.ts";

test("a key may send as many requests per minute as its rate; the headers tell what is left", async () => {
  const clock = createTestClock();
  const store = createMemoryStore({ now: clock.now });
  const { headers } = await addKey(store, "anna", { limits: { rate: 3 } });
  const app = await openApp({ store });
  const send = (url = "/tasks/") => app.inject({ url, headers });
  const first = await send();
  expect(first.statusCode).toBe(200);
  expect(first.headers).toMatchObject({
    ratelimit: '"key";r=2;t=60',
    "ratelimit-policy": '"key";q=3;w=60',
  });
  clock.advance(minuteMs / 2);
  // A file that is not there, and a path without a route, count like all others.
  expect((await send("/tasks/x/file")).headers["ratelimit"]).toBe('"key";r=1;t=30');
  expect((await send("/nowhere")).headers["ratelimit"]).toBe('"key";r=0;t=30');
  for (const url of ["/tasks/", "/tasks/events", "/tasks/x/file"]) {
    const refused = await send(url);
    expect(refused.statusCode).toBe(429);
    expect(refused.json()).toMatchObject({
      code: "too_many_requests",
      detail: "this key may send 3 requests per minute",
    });
    expect(refused.headers["retry-after"]).toBe("30");
  }
  clock.advance(minuteMs / 2);
  expect((await send()).statusCode).toBe(200);
});

test("keys without a rate, and other keys, are not limited", async () => {
  const store = createMemoryStore();
  const anna = await addKey(store, "anna", { limits: { rate: 1 } });
  const bert = await addKey(store, "bert");
  const app = await openApp({ store });
  await app.inject({ url: "/tasks/", headers: anna.headers });
  expect((await app.inject({ url: "/tasks/", headers: anna.headers })).statusCode).toBe(429);
  for (let n = 0; n < 5; n += 1) {
    const response = await app.inject({ url: "/tasks/", headers: bert.headers });
    expect(response.statusCode).toBe(200);
    expect(response.headers).not.toHaveProperty("ratelimit");
  }
  expect((await app.inject("/health/live")).statusCode).toBe(200);
});

test("two processes with one database share the rate of a key", async () => {
  const url = await openDatabase();
  const stores = [await openPostgresStore({ url }), await openPostgresStore({ url })];
  for (const store of stores) onTestFinished(() => store.close());
  const { headers } = await addKey(stores[0]!, "anna", { limits: { rate: 20 } });
  const apps = await Promise.all(stores.map((store) => openApp({ store })));
  const responses = await Promise.all(
    Array.from({ length: 50 }, (_, n) => apps[n % 2]!.inject({ url: "/tasks/", headers })),
  );
  // On a busy machine the store may not count one in time, which then passes.
  const counted = responses.filter(({ headers: { ratelimit } }) => ratelimit !== undefined);
  const passed = counted.filter(({ statusCode }) => statusCode === 200);
  expect(passed).toHaveLength(20);
});
