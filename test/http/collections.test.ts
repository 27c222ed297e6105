import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { App } from "../../src/http/app.ts";
import { noTasks } from "../../src/feed/collection-changes.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { Task } from "../../src/model/task.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { buildApp } from "./app.ts";
import { pageUrl, postBatch, postJson, postTask } from "./requests.ts";

let app: App;
let store: TaskStore;
beforeEach(async () => {
  store = createMemoryStore();
  app = await buildApp({ store });
  onTestFinished(() => app.close());
});

/** Posts a task for entries, and makes it a collection of this many, as a runner does. */
async function addCollection(count: number): Promise<string> {
  const { id } = (await postTask(app, { url: "https://example.com/list", options: { entries: "all" } })).json();
  const claim = await store.claim({ leaseMs: 60_000 });
  const { lease } = claim!;
  await store.update(id, { kind: "collection", counts: noTasks, growth: { slice: { offset: 0, made: 0 } } }, { lease });
  const members = Array.from({ length: count }, (_, n) => {
    const collection = { id, index: n + 1, title: "A list" };
    return { index: n + 1, task: { ...newTask(`${pageUrl}?n=${n}`, {}, new Date()), collection } };
  });
  await store.grow(id, { lease, members, isReusing: true, growth: null });
  return id;
}

const listed = async (query: string): Promise<{ tasks: Task[]; next: string | null }> =>
  (await app.inject(`/tasks/${query}`)).json();

describe("GET /tasks/?parent=", () => {
  it("lists the members of a collection in their order, page by page; other lists leave them out", async () => {
    const id = await addCollection(5);
    expect((await listed("")).tasks.map((task) => task.id)).toEqual([id]);
    const first = await listed(`?parent=${id}&limit=3`);
    expect(first.tasks.map(({ collection }) => collection?.index)).toEqual([1, 2, 3]);
    const second = await listed(new URL(first.next!, "http://a/tasks/").search);
    expect(second.tasks.map(({ collection }) => collection?.index)).toEqual([4, 5]);
    expect(second.next).toBeNull();
  });

  it("shows the collection with its counts, and those of one state", async () => {
    const id = await addCollection(3);
    const [first] = (await listed(`?parent=${id}`)).tasks;
    await postJson(app, `/tasks/${first?.id}/cancel`, {});
    const collection = (await app.inject(`/tasks/${id}`)).json();
    expect(collection).toMatchObject({ kind: "collection", state: "running", counts: { queued: 2, canceled: 1 } });
    expect((await listed(`?parent=${id}&state=canceled`)).tasks).toMatchObject([{ id: first?.id }]);
  });

  it("is no way to a stream of a collection, which has no medium itself", async () => {
    const id = await addCollection(1);
    const stream = async () => (await app.inject(`/tasks/${id}/stream`)).json();
    const refusal = { code: "conflict", detail: expect.stringContaining("is a collection") };
    expect(await stream()).toMatchObject(refusal);
    const { task, lease } = (await store.claim({ leaseMs: 60_000 }))!;
    await store.update(task.id, { state: "succeeded" }, { lease });
    expect((await app.inject(`/tasks/${id}`)).json()).toMatchObject({ state: "succeeded" });
    expect(await stream()).toMatchObject(refusal);
  });

  it("is 404 for an unknown one, and empty for a task that is none", async () => {
    expect((await app.inject("/tasks/?parent=x")).statusCode).toBe(404);
    const { id } = (await postTask(app, { url: pageUrl })).json();
    expect((await listed(`?parent=${id}`)).tasks).toEqual([]);
  });
});

describe("a collection over HTTP", () => {
  it("is canceled, retried and deleted as a task is", async () => {
    const id = await addCollection(2);
    const canceled = await postJson(app, `/tasks/${id}/cancel`, {});
    expect(canceled.json()).toMatchObject({ state: "canceled", counts: { canceled: 2, queued: 0 } });
    expect((await postJson(app, `/tasks/${id}/cancel`, {})).statusCode).toBe(409);
    const retried = await postJson(app, `/tasks/${id}/retry`, {});
    expect(retried.json()).toMatchObject({ state: "queued", growth: { retried: 0 } });
    const [member] = (await listed(`?parent=${id}`)).tasks;
    expect((await app.inject({ method: "DELETE", url: `/tasks/${id}` })).statusCode).toBe(204);
    expect((await app.inject(`/tasks/${member?.id}`)).statusCode).toBe(404);
    expect((await listed("")).tasks).toEqual([]);
  });
});

describe("options.entries", () => {
  it.each(["all", "3", "1-20,25", "5-", ["https://example.com/a", "https://example.com/b"]])(
    "takes %j",
    async (entries) => {
      const response = await postTask(app, { url: pageUrl, options: { entries } });
      expect(response.statusCode).toBe(201);
      expect(response.json().options).toEqual({ entries });
    },
  );

  it.each([
    ["none", "/options/entries"],
    ["0", "/options/entries"],
    ["1-2-3", "/options/entries"],
    ["5-3", "/options/entries"],
    [[], "/options/entries"],
    [["https://example.com/a", "ftp://example.com/b"], "/options/entries/1"],
    [Array.from({ length: 501 }, (_, n) => `https://a.test/${n}`), "/options/entries"],
  ])("refuses %j", async (entries, pointer) => {
    const response = await postTask(app, { url: pageUrl, options: { entries } });
    expect(response.statusCode).toBe(400);
    expect(response.json().errors).toMatchObject([{ pointer }]);
  });
});

describe("options.if_exists", () => {
  it("`reuse` gets the task that exists with 200 and its URL; `new`, the default, another one", async () => {
    const first = (await postTask(app, { url: pageUrl })).json();
    const again = await postTask(app, { url: `${pageUrl}#t=5`, options: { if_exists: "reuse" } });
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual(first);
    expect(again.headers.location).toBe(`../tasks/${first.id}`);
    for (const options of [{}, { if_exists: "new" }, { if_exists: "reuse", max_height: 720 }]) {
      const other = await postTask(app, { url: pageUrl, options });
      expect(other.statusCode).toBe(201);
      expect(other.json().id).not.toBe(first.id);
    }
  });

  it("`reuse` gets the task of another URL with the same video, if the resolver knows in time", async () => {
    const identify = async ({ hostname }: URL) => {
      if (hostname === "broken.example") throw new ServiceError("upstream_invalid", "no video in the URL");
      return hostname === "other.example" ? undefined : { extractor: "Films", id: "1" };
    };
    const own = await buildApp({ store, resolver: { ...createStubResolver(), identify } });
    onTestFinished(() => own.close());
    const ids: string[] = [];
    for (const host of ["long", "short", "other", "broken"]) {
      const made = await postTask(own, { url: `https://${host}.example/1`, options: { if_exists: "reuse" } });
      ids.push(made.json().id);
    }
    expect(ids[1]).toBe(ids[0]);
    expect(new Set(ids).size).toBe(3);
  });

  it("gets the same response for the same key", async () => {
    await postTask(app, { url: pageUrl });
    const body = { url: pageUrl, options: { if_exists: "reuse" } };
    const first = await postTask(app, body, { "idempotency-key": "k" });
    await app.inject({ method: "DELETE", url: `/tasks/${first.json().id}` });
    const again = await postTask(app, body, { "idempotency-key": "k" });
    expect([again.statusCode, again.body]).toEqual([200, first.body]);
  });

  it("says of each URL of a batch whether its task existed", async () => {
    await postTask(app, { url: pageUrl });
    const urls = [pageUrl, `${pageUrl}?other`, `${pageUrl}?other`];
    const { results } = (await postBatch(app, { urls, options: { if_exists: "reuse" } })).json();
    expect(results.map(({ status }: { status: number }) => status)).toEqual([200, 201, 200]);
    expect(results[1].task.id).toBe(results[2].task.id);
  });
});
