import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { serviceEndpoint } from "../../src/stores/outbox.ts";
import { StoreDiskFullError } from "../../src/stores/rules.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import type { Task } from "../../src/model/task.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { addFinishedTask } from "./finished-task.ts";
import { pageUrl } from "./requests.ts";
import { listenApp } from "./open-app.ts";

const content = Buffer.from("0123456789");
const folder = makeSharedFolder();
const store = createMemoryStore({ webhook: true });
const files = openDiskFiles({ folder });
let app: App;

beforeAll(async () => {
  app = await buildApp({ store, files });
});
afterAll(async () => {
  await app.close();
});

const removeFile = (id: string, headers = {}, via = app) =>
  via.inject({ method: "DELETE", url: `/tasks/${id}/file`, headers });

describe("DELETE /tasks/{id}/file", () => {
  it("removes the file and keeps the task, which says when", async () => {
    const before = await addFinishedTask({ store, files }, content);
    const since = Date.now();
    const response = await removeFile(before.id);
    expect(response.statusCode).toBe(200);
    const { removed_at, ...task } = response.json<Task>();
    expect(task).toMatchObject({ id: before.id, state: "succeeded", file: null, error: null });
    expect(task).toMatchObject({ finished_at: before.finished_at, updated_at: removed_at });
    expect(Date.parse(removed_at ?? "")).toBeGreaterThanOrEqual(since);
    expect((await app.inject(`/tasks/${before.id}`)).json()).toEqual(response.json());
    expect((await app.inject("/tasks/")).json().tasks).toContainEqual(response.json());
    expect(await files.ids()).not.toContain(before.id);
  });

  it("changes nothing if it is repeated, also at the same time", async () => {
    const { id } = await addFinishedTask({ store, files }, content);
    const events: unknown[] = [];
    const unsubscribe = store.events.subscribe((event) => events.push(event));
    const responses = await Promise.all(Array.from({ length: 5 }, () => removeFile(id)));
    responses.push(await removeFile(id));
    unsubscribe();
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(responses.map(() => 200));
    expect(new Set(responses.map(({ body }) => body)).size).toBe(1);
    expect(events).toHaveLength(1);
  });

  it("publishes the change, and tells webhooks' receivers nothing", async () => {
    const { id } = await addFinishedTask({ store, files }, content);
    const query = { endpoint: serviceEndpoint, limit: 64, leaseMs: 60_000 };
    for (const message of await store.outbox.claim(query)) await store.outbox.remove(message);
    const events: { state: unknown; json: string }[] = [];
    const unsubscribe = store.events.subscribe((event) => events.push(event));
    const { removed_at } = (await removeFile(id)).json<Task>();
    unsubscribe();
    expect(events.map(({ json }) => JSON.parse(json))).toMatchObject([
      { id, state: "succeeded", file: null, removed_at },
    ]);
    expect(await store.outbox.count()).toMatchObject({ messages: 0 });
  });

  it.each(["queued", "running", "failed", "canceled"] as const)("does not touch a task that is %s", async (state) => {
    const { id } = await store.create(newTask(pageUrl, {}, new Date()));
    if (state !== "queued") await store.update(id, { state: "running" });
    if (state !== "queued" && state !== "running") await store.update(id, { state });
    await files.openWorkFolder(id);
    const before = await store.get(id);
    const response = await removeFile(id);
    expect(response.json()).toMatchObject({
      status: 409,
      code: "conflict",
      detail: `the state of task ${id} is ${state}; it must be succeeded`,
    });
    expect(await store.get(id)).toEqual(before);
    expect(await files.ids()).toContain(id);
  });

  it("removes it only if it is the one that If-Match names", async () => {
    const { id, file } = await addFinishedTask({ store, files }, content);
    const refused = await removeFile(id, { "if-match": '"other"' });
    expect(refused.json()).toMatchObject({ status: 412, code: "precondition_failed" });
    expect(await files.ids()).toContain(id);
    expect((await removeFile(id, { "if-match": `"${file?.sha256}"` })).statusCode).toBe(200);
  });

  it("can be repeated if the file cannot be removed, which nobody gets meanwhile", async () => {
    const { id } = await addFinishedTask({ store, files }, content);
    let failures = 1;
    const remove = async (given: string) => {
      if (failures-- > 0) throw new ServiceError("unavailable", "file system error EIO");
      await files.remove(given);
    };
    await using failing = await buildApp({ store, files: { ...files, remove } });
    expect((await removeFile(id, {}, failing)).statusCode).toBe(503);
    expect((await app.inject(`/tasks/${id}/file`)).statusCode).toBe(410);
    expect((await removeFile(id, {}, failing)).json()).toMatchObject({ file: null });
    expect(await files.ids()).not.toContain(id);
  });

  it.each(["/file", ""])("has said so before it removes anything: DELETE /tasks/{id}%s", async (path) => {
    const { id } = await addFinishedTask({ store, files }, content);
    const said: unknown[] = [];
    const remove = async (given: string) => {
      said.push((await store.get(given))?.file);
      await files.remove(given);
    };
    await using watched = await buildApp({ store, files: { ...files, remove } });
    expect((await watched.inject({ method: "DELETE", url: `/tasks/${id}${path}` })).statusCode).toBeLessThan(300);
    expect(said).toEqual([null]);
  });

  it.each(["/file", ""])(
    "makes room if the store is full, which cannot say so before: DELETE /tasks/{id}%s",
    async (path) => {
      const { id } = await addFinishedTask({ store, files }, content);
      let isFull = true;
      const remove = async (given: string) => {
        isFull = false;
        await files.remove(given);
      };
      const update: typeof store.update = (...given) =>
        isFull ? Promise.reject(new StoreDiskFullError(new Error("database or disk is full"))) : store.update(...given);
      await using full = await buildApp({ store: { ...store, update }, files: { ...files, remove } });
      expect((await full.inject({ method: "DELETE", url: `/tasks/${id}${path}` })).statusCode).toBeLessThan(300);
      expect((await store.get(id))?.file ?? null).toBeNull();
    },
  );

  it.each(["/file", ""])(
    "removes nothing while the store cannot be written for another reason: DELETE /tasks/{id}%s",
    async (path) => {
      const { id } = await addFinishedTask({ store, files }, content);
      const update = () => Promise.reject(new ServiceError("unavailable", "the database is read-only"));
      await using readOnly = await buildApp({ store: { ...store, update }, files });
      expect((await readOnly.inject({ method: "DELETE", url: `/tasks/${id}${path}` })).statusCode).toBe(503);
      expect((await app.inject(`/tasks/${id}/file`)).body).toBe("0123456789");
    },
  );

  it("finishes what a killed service has begun: the file is gone, the record is not changed", async () => {
    const { id } = await addFinishedTask({ store, files }, content);
    await files.remove(id);
    expect((await removeFile(id)).json()).toMatchObject({ file: null });
  });

  it("lets downloads that have begun go on to their end", async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024, "film ");
    const { id } = await addFinishedTask({ store, files }, bytes);
    const port = await listenApp(app);
    const response = await fetch(`http://127.0.0.1:${port}/tasks/${id}/file`);
    expect((await removeFile(id)).statusCode).toBe(200);
    expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), bytes)).toBe(0);
  });
});

describe("a task whose file was removed", () => {
  it("has no file to get, which the response says with the time", async () => {
    const { id, file } = await addFinishedTask({ store, files }, content);
    const { removed_at } = (await removeFile(id)).json<Task>();
    for (const headers of [{}, { range: "bytes=0-1" }, { "if-none-match": `"${file?.sha256}"` }]) {
      const response = await app.inject({ url: `/tasks/${id}/file`, headers });
      expect(response.json()).toMatchObject({
        status: 410,
        code: "file_removed",
        retryable: false,
        detail: `the files of task ${id} were removed at ${removed_at}`,
      });
    }
    const head = await app.inject({ method: "HEAD", url: `/tasks/${id}/file` });
    expect([head.statusCode, head.body]).toEqual([410, ""]);
  });

  it("can be deleted, and cannot be retried", async () => {
    const { id } = await addFinishedTask({ store, files }, content);
    await removeFile(id);
    const retried = await app.inject({ method: "POST", url: `/tasks/${id}/retry` });
    expect(retried.statusCode).toBe(409);
    const deleted = await app.inject({ method: "DELETE", url: `/tasks/${id}` });
    expect(deleted.statusCode).toBe(204);
    expect((await removeFile(id)).statusCode).toBe(404);
  });
});
