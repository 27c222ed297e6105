import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { State } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { makeFolder } from "../folder.ts";
import { addFinishedTask } from "./finished-task.ts";
import { recording } from "./recording.ts";
import { pageUrl } from "./requests.ts";

let app: App;
let store: TaskStore;
let files: FileStore;
beforeEach(async () => {
  store = createMemoryStore();
  files = openDiskFiles({ folder: makeFolder() });
  app = await buildApp({ store, files });
});
afterEach(() => app.close());

const failure = { code: "upstream_timeout", message: "the page was too slow", retryable: true };

async function addTask(state: State): Promise<string> {
  const { id } = await store.create(newTask(pageUrl, {}, new Date()));
  if (state !== "queued") await store.claim({ leaseMs: 60_000 });
  if (state === "failed") await store.update(id, { state, error: failure });
  else if (state === "succeeded" || state === "canceled") await store.update(id, { state });
  return id;
}

const post = (id: string, what: "cancel" | "finish" | "retry", to = app) =>
  to.inject({ method: "POST", url: `/tasks/${id}/${what}` });

describe("POST /tasks/{id}/cancel", () => {
  it.each(["queued", "running"] as const)("cancels a task that is %s", async (state) => {
    const id = await addTask(state);
    const response = await post(id, "cancel");
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ id, state: "canceled", progress: null });
    expect(response.json().finished_at).not.toBeNull();
    expect(await store.get(id)).toEqual(response.json());
  });

  it.each(["succeeded", "failed", "canceled"] as const)("does not cancel a task that has %s", async (state) => {
    const id = await addTask(state);
    const response = await post(id, "cancel");
    expect(response.json()).toMatchObject({ status: 409, code: "conflict", retryable: false });
    const said = state === "canceled" ? "been canceled" : state;
    expect(response.json().detail).toBe(`task ${id} has already ${said} and cannot be canceled`);
    expect((await store.get(id))?.state).toBe(state);
  });
});

describe("POST /tasks/{id}/finish", () => {
  it("asks the run of a recording to end, however often it is sent", async () => {
    const id = await addTask("running");
    await store.update(id, { progress: recording });
    const response = await post(id, "finish");
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ id, state: "running", finish_requested: true });
    const again = await post(id, "finish");
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual(response.json());
    const ended = await store.update(id, { state: "succeeded" });
    expect(ended).not.toHaveProperty("finish_requested");
    expect((await post(id, "finish")).json()).toMatchObject({ status: 409, code: "conflict" });
  });

  it("does not touch a task that records no live stream", async () => {
    const id = await addTask("running");
    for (const progress of [null, { ...recording, is_live: false }]) {
      const before = await store.update(id, { progress });
      const response = await post(id, "finish");
      expect(response.json()).toMatchObject({ status: 409, code: "conflict", retryable: false });
      expect(response.json().detail).toContain("is not recording a live stream");
      expect(await store.get(id)).toEqual(before);
    }
  });

  it.each(["queued", "succeeded", "failed", "canceled"] as const)("does not touch a task that is %s", async (state) => {
    const id = await addTask(state);
    const response = await post(id, "finish");
    expect(response.json()).toMatchObject({ status: 409, code: "conflict" });
    expect(response.json().detail).toContain(`the state of task ${id} is ${state}; it must be running`);
    expect(await store.get(id)).not.toHaveProperty("finish_requested");
  });
});

describe("POST /tasks/{id}/retry", () => {
  it.each(["failed", "canceled"] as const)("queues a %s task again", async (state) => {
    const id = await addTask(state);
    const parts = await files.openWorkFolder(id);
    writeFileSync(join(parts, "0"), "fetched");
    const response = await post(id, "retry");
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ id, state: "queued", attempts: 0, error: null });
    expect(response.json().finished_at).toBeNull();
    expect((await store.claim({ leaseMs: 1 }))?.task.id).toBe(id);
    expect(await files.ids()).toEqual([id]);
  });

  it.each(["queued", "running", "succeeded"] as const)("does not touch a task that is %s", async (state) => {
    const id = await addTask(state);
    const before = await store.get(id);
    const response = await post(id, "retry");
    expect(response.json()).toMatchObject({ status: 409, code: "conflict" });
    expect(response.json().detail).toContain(`is ${state};`);
    expect(await store.get(id)).toEqual(before);
  });

  it("queues it once for many requests at a time", async () => {
    const id = await addTask("failed");
    const responses = await Promise.all(Array.from({ length: 10 }, () => post(id, "retry")));
    const queued = responses.filter(({ statusCode }) => statusCode === 200);
    const refused = responses.filter(({ statusCode }) => statusCode === 409);
    expect([queued.length, refused.length]).toEqual([1, 9]);
  });
});

describe("two processes with one store", () => {
  it("queue a task once for two retries, and do not requeue its run", async () => {
    const other = await buildApp({ store, files });
    const id = await addTask("failed");
    const retries = [post(id, "retry"), post(id, "retry", other)];
    const responses = await Promise.all(retries);
    expect(responses.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b)).toEqual([200, 409]);
    await store.claim({ leaseMs: 60_000 });
    for (const process of [app, other]) {
      const late = await post(id, "retry", process);
      expect(late.json()).toMatchObject({ status: 409, code: "conflict" });
      expect(late.json().detail).toContain("is running;");
    }
    expect(await store.get(id)).toMatchObject({ state: "running", attempts: 1 });
    await other.close();
  });

  it("do not cancel a task that has ended, whichever of them is asked", async () => {
    const other = await buildApp({ store, files });
    const id = await addTask("running");
    const cancels = [post(id, "cancel"), post(id, "cancel", other)];
    const responses = await Promise.all(cancels);
    expect(responses.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b)).toEqual([200, 409]);
    for (const state of ["succeeded", "failed"] as const) {
      const ended = await addTask(state);
      for (const process of [app, other]) {
        expect((await post(ended, "cancel", process)).statusCode).toBe(409);
      }
      expect(await store.get(ended)).toMatchObject({ state });
    }
    await other.close();
  });
});

describe("either", () => {
  it.each(["cancel", "finish", "retry"] as const)("responds with 404 if there is no task: %s", async (what) => {
    expect((await post("x", what)).json()).toMatchObject({ status: 404, code: "not_found" });
  });

  it.each(["cancel", "retry"] as const)("ignores a body: %s", async (what) => {
    const id = await addTask(what === "cancel" ? "queued" : "failed");
    const headers = { "content-type": "text/plain" };
    const url = `/tasks/${id}/${what}`;
    const response = await app.inject({ method: "POST", url, headers, payload: "not JSON" });
    expect(response.statusCode).toBe(200);
  });
});

describe("DELETE /tasks/{id}", () => {
  it("removes the file of the task and its work folder", async () => {
    const { id } = await addFinishedTask({ store, files }, Buffer.from("content"));
    await files.openWorkFolder(id);
    const other = await addFinishedTask({ store, files }, Buffer.from("other"));
    expect((await app.inject({ method: "DELETE", url: `/tasks/${id}` })).statusCode).toBe(204);
    expect(await files.ids()).toEqual([other.id]);
    expect((await app.inject(`/tasks/${id}/file`)).statusCode).toBe(404);
    expect((await app.inject(`/tasks/${other.id}/file`)).body).toBe("other");
  });

  it("keeps the task if its file cannot be removed, so that the request can be repeated", async () => {
    const { id } = await addFinishedTask({ store, files }, Buffer.from("content"));
    let failures = 1;
    const remove = async (given: string) => {
      if (failures-- > 0) throw new ServiceError("unavailable", "file system error EIO");
      await files.remove(given);
    };
    const failing = await buildApp({ store, files: { ...files, remove } });
    const deleteTask = () => failing.inject({ method: "DELETE", url: `/tasks/${id}` });
    expect((await deleteTask()).json()).toMatchObject({ status: 503, code: "unavailable" });
    expect((await app.inject(`/tasks/${id}/file`)).statusCode).toBe(410);
    expect((await deleteTask()).statusCode).toBe(204);
    expect(await store.get(id)).toBeUndefined();
    expect(await files.ids()).toEqual([]);
    await failing.close();
  });
});
