import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { App } from "../../src/http/app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { buildApp } from "./app.ts";
import { pageUrl, postBatch, postTask } from "./requests.ts";

let app: App;
beforeEach(async () => {
  app = await buildApp();
});
afterEach(() => app.close());

const urlsOf = (count: number) => Array.from({ length: count }, (_, n) => `${pageUrl}?n=${n}`);
const list = async () => (await app.inject("/tasks/?limit=200")).json().tasks;

describe("POST /tasks/batch", () => {
  it("makes a task for each URL, in their order, with the options", async () => {
    const response = await postBatch(app, { urls: urlsOf(3), options: { max_height: 720 } });
    expect(response.statusCode).toBe(200);
    const { results } = response.json();
    expect(results).toMatchObject(
      urlsOf(3).map((url) => ({ status: 201, task: { url, state: "queued", options: { max_height: 720 } } })),
    );
    const ids = (tasks: { id: string }[]) => tasks.map(({ id }) => id);
    expect(ids(await list())).toEqual(ids(results.map(({ task }: { task: { id: string } }) => task)).toReversed());
  });

  it("makes ids in the order of the URLs, for clients that sort tasks of one millisecond by them", async () => {
    const { results } = (await postBatch(app, { urls: urlsOf(20) })).json();
    const ids = results.map(({ task }: { task: { id: string } }) => task.id);
    expect(ids).toEqual(ids.toSorted());
  });

  it("tells of each URL that is refused, and makes the others", async () => {
    const urls = [`${pageUrl}?1`, "nowhere", "http://127.0.0.1/secret", `${pageUrl}?2`];
    const { results } = (await postBatch(app, { urls })).json();
    expect(results.map(({ status }: { status: number }) => status)).toEqual([201, 400, 422, 201]);
    expect(results[1].problem).toMatchObject({ code: "invalid_url", status: 400, retryable: false });
    expect(results[1].problem.errors).toMatchObject([{ pointer: "/urls/1" }]);
    expect(results[2].problem).toMatchObject({ code: "address_blocked", status: 422 });
    expect(results[1]).not.toHaveProperty("task");
    expect(results[0]).not.toHaveProperty("problem");
    expect(await list()).toHaveLength(2);
  });

  it("takes 500 URLs, and none of 501", async () => {
    const response = await postBatch(app, { urls: urlsOf(500) });
    expect(response.json().results).toHaveLength(500);
    const refused = await postBatch(app, { urls: urlsOf(501) });
    expect([refused.statusCode, refused.json().code]).toEqual([400, "invalid_request"]);
  });

  it("makes nothing twice with an idempotency key, and what it has not made yet", async () => {
    const headers = { "idempotency-key": "a" };
    const first = (await postBatch(app, { urls: urlsOf(3) }, headers)).json();
    const second = (await postBatch(app, { urls: urlsOf(3) }, headers)).json();
    expect(second).toEqual(first);
    const longer = await postBatch(app, { urls: urlsOf(4) }, headers);
    expect(longer.json().results.slice(0, 3)).toEqual(first.results);
    expect(await list()).toHaveLength(4);
    const other = await postBatch(app, { urls: [`${pageUrl}?other`] }, headers);
    expect([other.statusCode, other.json().code]).toEqual([422, "idempotency_mismatch"]);
    expect((await postTask(app, { url: pageUrl }, headers)).statusCode).toBe(201);
  });

  it("refuses options and members as POST /tasks/ does", async () => {
    const ranges = [{ start: 2, end: 1 }];
    for (const body of [{ urls: [pageUrl], options: { ranges } }, { urls: [pageUrl], option: {} }, { urls: pageUrl }]) {
      expect((await postBatch(app, body)).json().code).toBe("invalid_request");
    }
    expect(await list()).toEqual([]);
  });

  it("takes options of 16,000 bytes, and none of one more: each task keeps them", async () => {
    const optionsOf = (bytes: number) => {
      const entries = [`${pageUrl}?`, `${pageUrl}?`, `${pageUrl}?`];
      const free = bytes - JSON.stringify({ entries }).length;
      return { entries: entries.map((url, n) => url + "a".repeat(Math.floor((free + n) / 3))) };
    };
    expect((await postBatch(app, { urls: urlsOf(2), options: optionsOf(16_000) })).json().results).toHaveLength(2);
    const refused = (await postBatch(app, { urls: urlsOf(2), options: optionsOf(16_001) })).json();
    expect(refused).toMatchObject({ code: "invalid_request", errors: [{ pointer: "/options" }] });
    expect(await list()).toHaveLength(2);
  });

  it.each([
    ["entries", "[1" + ",1".repeat(100_000)],
    ["members", `{"k":1${Array.from({ length: 80_000 }, (_, n) => `,"k${n}":1`).join("")}`],
  ])("counts the %s of a body before it is parsed, which would hold up all requests", async (_, unterminated) => {
    const payload = `{"urls":["${pageUrl}"],"options":${unterminated}`;
    const request = { method: "POST", url: "/tasks/batch", headers: { "content-type": "application/json" } } as const;
    expect((await app.inject({ ...request, payload })).json().code).toBe("payload_too_large");
    const short = payload.slice(0, 2_000);
    expect((await app.inject({ ...request, payload: short })).json().code).toBe("invalid_request");
    expect(await list()).toEqual([]);
  });
});

it("POST /tasks/batch makes as many tasks as the queue takes", async () => {
  const full = await buildApp({ store: createMemoryStore({ maxQueued: 2 }) });
  try {
    const { results } = (await postBatch(full, { urls: urlsOf(3) })).json();
    expect(results.map(({ status }: { status: number }) => status)).toEqual([201, 201, 503]);
    expect((await postBatch(full, { urls: urlsOf(3) })).statusCode).toBe(503);
  } finally {
    await full.close();
  }
});
