import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { effect } from "@preact/signals";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { App } from "../../src/http/app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createTaskEvents } from "../../src/feed/task-events.ts";
import { createTaskView, type Tasks } from "../../src/web/tasks/tasks.ts";
import { pageInfo } from "../page-info.ts";
import { halfway } from "../watch/task.ts";
import { addCollection } from "./page/stored-tasks.ts";
import { openApp } from "../http/open-app.ts";
import { listen } from "../net/listen.ts";

interface Service {
  app: App;
  url: URL;
  /** Paths of the requests so far. */
  paths: string[];
}

async function serve(store: TaskStore, port = 0): Promise<Service> {
  const app = await openApp({ store });
  const paths: string[] = [];
  app.server.on("request", ({ url = "" }) => void paths.push(url));
  await app.listen({ host: "127.0.0.1", port });
  const address = app.server.address() as AddressInfo;
  return { app, url: new URL(`http://127.0.0.1:${address.port}/`), paths };
}

function createStore(): TaskStore {
  return createMemoryStore({ events: createTaskEvents() });
}

function addTask(store: TaskStore, name: string): Promise<Task> {
  return store.create(newTask(`https://example.com/${name}`, {}, new Date()));
}

/** Adds a running task, whose title is its name. */
async function startTask(store: TaskStore, name: string): Promise<string> {
  const { id } = await addTask(store, name);
  while ((await store.claim({ leaseMs: 60_000 }))?.task.id !== id);
  await store.update(id, { info: pageInfo({ title: name }) });
  return id;
}

/** Follows until the test is over, or the function that is returned is called. */
function follow(tasks: Tasks): () => Promise<void> {
  const ending = new AbortController();
  const following = tasks.follow(ending.signal);
  const end = () => {
    ending.abort();
    return following;
  };
  onTestFinished(end);
  return end;
}

/** Resolves when the condition, which reads signals, holds. */
async function until(isTrue: () => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = effect(() => {
    if (isTrue()) resolve();
  });
  await promise;
  stop();
}

/** Follows the tasks of the service at `url` until the test is over; resolves once they are read. */
async function followNew(url: URL): Promise<Tasks> {
  const tasks = createTaskView(url);
  follow(tasks);
  await until(() => tasks.isRead.value);
  return tasks;
}

const names = (tasks: Tasks) => tasks.shown.value.map(({ value }) => value.url.split("/").at(-1));
const first = (tasks: Tasks) => tasks.shown.value[0]?.value;

describe("the page's tasks", () => {
  it("are those of the service, newest first, as they change", async () => {
    const store = createStore();
    await addTask(store, "old");
    const { url, paths } = await serve(store);
    const tasks = await followNew(url);
    expect(names(tasks)).toEqual(["old"]);
    expect(paths).toEqual(["/tasks/events", "/tasks/?limit=50"]);
    const { id } = await addTask(store, "new");
    await until(() => names(tasks).join(" ") === "new old");
    await store.delete(id);
    await until(() => names(tasks).join(" ") === "old");
  });

  it("keep their information when events leave it out", async () => {
    const store = createStore();
    const id = await startTask(store, "film");
    const { url, paths } = await serve(store);
    const tasks = await followNew(url);
    await store.update(id, { progress: halfway });
    await until(() => first(tasks)?.progress !== null);
    expect(first(tasks)).toEqual(await store.get(id));
    expect(tasks.running.value).toEqual({ count: 1, speed: halfway!.speed });
    expect(paths).toHaveLength(2);
  });

  it("are complete when an older one than those of the list changes", async () => {
    const store = createStore();
    const id = await startTask(store, "oldest");
    for (let n = 0; n < 50; n += 1) await addTask(store, `${n}`);
    const { url } = await serve(store);
    const tasks = await followNew(url);
    expect(names(tasks)).not.toContain("oldest");
    await store.update(id, { progress: halfway });
    await until(() => names(tasks).length === 51);
    const oldest = tasks.shown.value.find(({ value }) => value.id === id);
    expect(oldest?.value).toEqual(await store.get(id));
  });

  it("do not go back when an event is older than a response", async () => {
    const store = createStore();
    const task = await addTask(store, "film");
    const { url } = await serve(store);
    const tasks = await followNew(url);
    const later = new Date(Date.now() + 60_000).toISOString();
    tasks.add({ ...task, state: "canceled", updated_at: later });
    await store.claim({ leaseMs: 60_000 });
    await addTask(store, "another");
    await until(() => names(tasks).length === 2);
    const film = tasks.shown.value.find(({ value }) => value.id === task.id);
    expect(film?.value.state).toBe("canceled");
  });

  it("catch up after a lost connection, without the list", async () => {
    const store = createStore();
    const id = await startTask(store, "film");
    const { app, url, paths } = await serve(store);
    const tasks = await followNew(url);
    await store.update(id, { progress: halfway });
    await until(() => first(tasks)?.progress !== null);
    const lost = until(() => tasks.connection.value === "lost");
    app.server.closeAllConnections();
    await store.update(id, { state: "canceled" });
    await lost;
    await until(() => tasks.connection.value === "open" && first(tasks)?.state === "canceled");
    expect(paths.filter((path) => path.startsWith("/tasks/?"))).toHaveLength(1);
  });

  it("catch up when they are followed again, deleted ones too", async () => {
    const store = createStore();
    const [one, two] = [await startTask(store, "one"), await startTask(store, "two")];
    const { url, paths } = await serve(store);
    const tasks = createTaskView(url);
    const end = follow(tasks);
    await until(() => tasks.isRead.value);
    await store.update(one, { progress: halfway });
    await until(() => tasks.running.value.speed > 0);
    await end();
    await store.delete(one);
    await store.update(two, { state: "canceled" });
    follow(tasks);
    await until(() => names(tasks).join(" ") === "two" && first(tasks)?.state === "canceled");
    expect(paths.filter((path) => path.startsWith("/tasks/?"))).toHaveLength(1);
  });

  it("are read again from a service that does not know what they missed", async () => {
    const before = createStore();
    const id = await startTask(before, "gone");
    const { app, url } = await serve(before);
    const tasks = await followNew(url);
    await before.update(id, { progress: halfway });
    await until(() => tasks.running.value.speed > 0);
    const lost = until(() => tasks.connection.value === "lost");
    await app.close();
    await lost;
    const after = createStore();
    await addTask(after, "other");
    await serve(after, Number(url.port));
    await until(() => names(tasks).join(" ") === "other" && tasks.connection.value === "open");
    expect(tasks.running.value).toEqual({ count: 0, speed: 0 });
  });

  it("are asked for no sooner than Retry-After says", async () => {
    const times: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = createServer((_request, response) => {
      times.push(performance.now());
      response.writeHead(429, { "retry-after": "1" }).end();
      if (times.length === 2) resolve();
    });
    onTestFinished(() => void server.close());
    const port = await listen(server);
    const tasks = createTaskView(new URL(`http://127.0.0.1:${port}/`));
    follow(tasks);
    await promise;
    const [one = 0, two = 0] = times;
    expect(two - one).toBeGreaterThan(990);
    expect(tasks.connection.value).toBe("lost");
  });

  it("are shown also if the list takes longer than the service may be silent: it has 45 s, then 10 minutes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const lists: ServerResponse[] = [];
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const server = createServer((request, response) => {
      if (request.url === "/tasks/events")
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      else asked[lists.push(response) - 1]?.resolve();
    });
    onTestFinished(() => server.close().closeAllConnections());
    const port = await listen(server);
    const tasks = createTaskView(new URL(`http://127.0.0.1:${port}/`));
    follow(tasks);
    await asked[0]?.promise;
    vi.advanceTimersByTime(45_000);
    await until(() => tasks.connection.value === "lost");
    await vi.advanceTimersByTimeAsync(200);
    await asked[1]?.promise;
    vi.advanceTimersByTime(599_000);
    lists[1]?.writeHead(200, { "content-type": "application/json" }).end('{"tasks":[],"next":null}');
    await until(() => tasks.isRead.value);
    expect(lists).toHaveLength(2);
  });

  it("are listed in pages, those in one state alone if wanted", async () => {
    const store = createStore();
    const failed = await startTask(store, "failed");
    const error = { code: "no_media", message: "nothing", retryable: false };
    await store.update(failed, { state: "failed", error });
    for (let n = 0; n < 55; n += 1) await addTask(store, `${n}`);
    const { url } = await serve(store);
    const tasks = await followNew(url);
    expect(names(tasks)).toHaveLength(50);
    expect(tasks.hasOlder.value).toBe(true);
    await tasks.setFilter("failed");
    expect(names(tasks)).toEqual(["failed"]);
    expect(tasks.hasOlder.value).toBe(false);
    await tasks.setFilter(undefined);
    await tasks.readOlder();
    expect(names(tasks)).toHaveLength(56);
    expect(tasks.hasOlder.value).toBe(false);
    expect(await tasks.readAll(["queued", "running"])).toHaveLength(55);
  });

  it("stay those in the state before if those in another one cannot be read", async () => {
    const store = createStore();
    for (let n = 0; n < 51; n += 1) await addTask(store, `${n}`);
    let isDown = false;
    const list: typeof store.list = async (query) => {
      if (isDown) throw new ServiceError("unavailable", "the store is down");
      return store.list(query);
    };
    const { url } = await serve({ ...store, list });
    const tasks = await followNew(url);
    isDown = true;
    const reading = tasks.setFilter("failed");
    expect([names(tasks), tasks.isRead.value, tasks.hasOlder.value]).toEqual([[], false, false]);
    await expect(reading).rejects.toMatchObject({ code: "unavailable" });
    expect([names(tasks).length, tasks.isRead.value, tasks.hasOlder.value]).toEqual([50, true, true]);
    isDown = false;
    await tasks.readOlder();
    expect(names(tasks)).toHaveLength(51);
  });

  it("of a collection are as many as were asked for, in whatever pages they come", async () => {
    const store = createStore();
    const titles = Array.from({ length: 260 }, (_, n) => `${n}`);
    const { id } = await addCollection({ store }, { title: "list" }, titles);
    const { url } = await serve(store);
    const tasks = createTaskView(url);
    const counts = [50, 250, 300].map((count) => tasks.readMembers(id, count));
    const read = (await Promise.all(counts)).map(({ ids, hasMore }) => [ids.length, hasMore]);
    expect(read).toEqual([
      [50, true],
      [250, true],
      [260, false],
    ]);
  });

  it("are read once more if another state is wanted while they are read again", async () => {
    const store = createMemoryStore({ events: createTaskEvents({ maxEvents: 1 }) });
    const reading = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    let isGated = false;
    const list: typeof store.list = async (query) => {
      if (isGated) {
        isGated = false;
        reading.resolve();
        await gate.promise;
      }
      return store.list(query);
    };
    const { app, url } = await serve({ ...store, list });
    const id = await startTask(store, "film");
    const tasks = await followNew(url);
    isGated = true;
    app.server.closeAllConnections();
    // More than the service remembers.
    await store.update(id, { state: "canceled" });
    await addTask(store, "next");
    await reading.promise;
    await tasks.setFilter("running");
    expect(names(tasks)).toEqual(["film"]);
    gate.resolve();
    await until(() => tasks.shown.value.length === 0);
  });

  it("change and go as the service responds, and say when they get another state", async () => {
    const store = createStore();
    const id = await startTask(store, "film");
    const { url } = await serve(store);
    const tasks = await followNew(url);
    const states: string[] = [];
    tasks.onTransition(({ state }) => void states.push(state));
    await tasks.act(id, "cancel");
    expect(first(tasks)?.state).toBe("canceled");
    await tasks.act(id, "retry");
    await expect(tasks.act(id, "finish")).rejects.toMatchObject({ code: "conflict", status: 409 });
    await tasks.act(id, "delete");
    await tasks.act(id, "delete");
    expect(names(tasks)).toEqual([]);
    expect(states).toEqual(["canceled", "queued"]);
  });
});
