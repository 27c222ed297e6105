import { expect, it } from "vitest";
import { buildApp, buildWorkerApp } from "./app.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";

it("is live and ready while its store takes writes", async () => {
  await using app = await buildApp();
  expect((await app.inject("/health/live")).json()).toEqual({ status: "ok" });
  expect((await app.inject("/health/ready")).json()).toEqual({ status: "ok" });
});

it.each([
  ["an api", buildApp],
  ["a worker", buildWorkerApp],
])("says what the kernel does not forbid yt-dlp, as %s", async (_role, build) => {
  const unenforced = ["yt-dlp may read other files"];
  await using app = await build({ store: createMemoryStore(), resolver: { ...createStubResolver(), unenforced } });
  expect((await app.inject("/health/ready")).json()).toEqual({ status: "ok", unenforced });
});

it("is live but not ready when its store is closed", async () => {
  const store = createMemoryStore();
  await using app = await buildApp({ store });
  await store.close();
  const ready = await app.inject("/health/ready");
  expect(ready.statusCode).toBe(503);
  expect(ready.json()).toMatchObject({ code: "unavailable", retryable: true });
  expect(ready.headers["retry-after"]).toBeDefined();
  expect((await app.inject("/health/live")).statusCode).toBe(200);
});

it.each([
  ["an api", buildApp],
  ["a worker", buildWorkerApp],
])("is live but not ready once it drains, as %s", async (_role, build) => {
  const drainSignal = new AbortController();
  const store = createMemoryStore();
  await using app = await build({ store, drainSignal: drainSignal.signal });
  expect((await app.inject("/health/ready")).statusCode).toBe(200);
  drainSignal.abort();
  const ready = await app.inject("/health/ready");
  expect([ready.statusCode, ready.headers["retry-after"]]).toEqual([503, "5"]);
  expect(ready.json()).toMatchObject({
    code: "unavailable",
    detail: "the service is shutting down",
    retryable: true,
  });
  expect((await app.inject("/health/live")).statusCode).toBe(200);
});
