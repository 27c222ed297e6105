import { buildWorkerApp } from "./app.ts";
import { expect, it } from "vitest";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";

it("tells whether it is live and ready", async () => {
  const store = createMemoryStore();
  await using app = await buildWorkerApp({ store });
  expect((await app.inject("/health/live")).json()).toEqual({ status: "ok" });
  expect((await app.inject("/health/ready")).json()).toEqual({ status: "ok" });
  await store.close();
  const ready = await app.inject("/health/ready");
  expect([ready.statusCode, ready.headers["retry-after"]]).toEqual([503, expect.any(String)]);
});

it.each(["/", "/tasks/", "/tasks/events", "/info?url=https://example.com/", "/openapi.json", "/docs"])(
  "has no route %s, and says that the process only runs tasks",
  async (url) => {
    await using app = await buildWorkerApp({ store: createMemoryStore() });
    const response = await app.inject(url);
    expect(response.statusCode).toBe(404);
    expect(response.headers["content-type"]).toMatch(/^application\/problem\+json/);
    const [path] = url.split("?");
    expect(response.json()).toMatchObject({
      code: "not_found",
      detail: `no route ${path}: this process only runs tasks`,
    });
  },
);

it("takes no task, and refuses other methods of its routes", async () => {
  await using app = await buildWorkerApp({ store: createMemoryStore() });
  const post = await app.inject({
    method: "POST",
    url: "/tasks/",
    payload: { url: "https://a.test" },
  });
  expect([post.statusCode, post.json()]).toEqual([404, expect.objectContaining({ code: "not_found" })]);
  const wrong = await app.inject({ method: "DELETE", url: "/health/live" });
  expect([wrong.statusCode, wrong.headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
});
