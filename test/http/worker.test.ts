import { expect, it } from "vitest";
import { buildWorkerApp } from "../../src/http/app.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";

const parts = () => ({ store: createMemoryStore(), resolver: createStubResolver() });

it("answers whether it is live and ready", async () => {
  const { store, resolver } = parts();
  await using app = await buildWorkerApp({ store, resolver });
  expect((await app.inject("/health/live")).json()).toEqual({ status: "ok" });
  expect((await app.inject("/health/ready")).json()).toEqual({ status: "ok" });
  await store.close();
  const ready = await app.inject("/health/ready");
  expect([ready.statusCode, ready.headers["retry-after"]]).toEqual([503, expect.any(String)]);
});

it.each([
  "/",
  "/tasks/",
  "/tasks/events",
  "/info?url=https://example.com/",
  "/openapi.json",
  "/docs",
])("answers %s with a problem document that says that there is nothing", async (url) => {
  await using app = await buildWorkerApp(parts());
  const answer = await app.inject(url);
  expect(answer.statusCode).toBe(404);
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  const [path] = url.split("?");
  expect(answer.json()).toMatchObject({
    code: "not_found",
    detail: `no route ${path}: this process only runs tasks`,
  });
});

it("takes no task, and refuses other methods where it answers", async () => {
  await using app = await buildWorkerApp(parts());
  const post = await app.inject({
    method: "POST",
    url: "/tasks/",
    payload: { url: "https://a.test" },
  });
  expect([post.statusCode, post.json()]).toEqual([
    404,
    expect.objectContaining({ code: "not_found" }),
  ]);
  const wrong = await app.inject({ method: "DELETE", url: "/health/live" });
  expect([wrong.statusCode, wrong.headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
});

it("stops what runs its tasks when it closes, before it closes the store", async () => {
  const order: string[] = [];
  const { store, resolver } = parts();
  const app = await buildWorkerApp({
    resolver,
    runner: { stop: async () => void order.push("runner") },
    store: { ...store, close: async () => void order.push("store") },
  });
  await app.close();
  expect(order).toEqual(["runner", "store"]);
});
