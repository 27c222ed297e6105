import { renameSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { App } from "../../src/http/app.ts";
import { parseWait } from "../../src/http/responses/prefer-wait.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createTaskEvents } from "../../src/feed/task-events.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { samplePageInfo } from "../contracts/task-store/page-info.ts";
import { createLibraryHarness } from "../runner/library/harness.ts";
import { buildApp } from "./app.ts";
import { pageUrl, postTask } from "./requests.ts";
import { listenApp } from "./open-app.ts";

let store: TaskStore;
let app: App;
/** Listeners to the events of the store. */
let listening = 0;

beforeEach(async () => {
  const events = createTaskEvents();
  store = createMemoryStore({
    events: {
      ...events,
      get lastId() {
        return events.lastId;
      },
      subscribe(listener) {
        listening += 1;
        return events.subscribe(listener);
      },
    },
  });
  app = await buildApp({ store });
});
afterEach(() => app.close());

const get = (id: string, prefer: string, headers = {}) =>
  app.inject({ url: `/tasks/${id}`, headers: { prefer, ...headers } });
const add = async () => (await postTask(app, { url: pageUrl })).json();
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("Prefer: wait", () => {
  it("lets GET respond once the task has ended", async () => {
    const { id } = await add();
    const response = get(id, "wait=30");
    await turn();
    await store.claim({ leaseMs: 60_000 });
    await store.update(id, { state: "queued" });
    const early = await Promise.race([response, turn()]);
    expect(early).toBeUndefined();
    await store.update(id, { state: "canceled" });
    const { headers, statusCode, json } = await response;
    expect([statusCode, json().state]).toEqual([200, "canceled"]);
    expect(headers["preference-applied"]).toBe("wait=30");
  });

  it("lets as many clients as like wait for an earlier task that is known to have a page", async () => {
    const { id } = await add();
    await store.update(id, { info: samplePageInfo() });
    const reused = vi.spyOn(store, "reuse");
    const body = { url: pageUrl, options: { if_exists: "reuse" } };
    const responses = Array.from({ length: 100 }, () => postTask(app, body, { prefer: "wait=60" }));
    await vi.waitFor(() => expect(reused).toHaveBeenCalledTimes(responses.length), { timeout: 60_000 });
    await store.update(id, { state: "canceled" });
    const ended = (await Promise.all(responses)).map((response) => response.json());
    expect(new Set(ended.map((task) => `${task.id} ${task.state}`))).toEqual(new Set([`${id} canceled`]));
  });

  it("lets POST respond once the task has ended, also when it is sent again", async () => {
    const headers = { prefer: "wait=30", "idempotency-key": "a" };
    const created = new Promise((resolve) => store.events.subscribe(resolve));
    const first = postTask(app, { url: pageUrl }, headers);
    await created;
    const [task] = (await store.list({ limit: 1 })).tasks;
    const again = postTask(app, { url: pageUrl }, headers);
    await turn();
    await store.update(task!.id, { state: "canceled" });
    for (const response of [await first, await again, await postTask(app, { url: pageUrl }, headers)]) {
      expect([response.statusCode, response.json().id, response.json().state]).toEqual([201, task!.id, "canceled"]);
      expect(response.headers["preference-applied"]).toBe("wait=30");
      expect(response.headers.location).toBe(`../tasks/${task!.id}`);
    }
  });

  it("is over at once if the task of the idempotency key was deleted since", async () => {
    const headers = { "idempotency-key": "a" };
    const { id } = (await postTask(app, { url: pageUrl }, headers)).json();
    await store.delete(id);
    const { statusCode, json } = await postTask(app, { url: pageUrl }, { ...headers, prefer: "wait=60" });
    expect([statusCode, json().id, json().state]).toEqual([201, id, "queued"]);
  }, 30_000);

  it("ends after its time, with the state then", async () => {
    const { id } = await add();
    const { headers, statusCode, json } = await get(id, "wait=0");
    expect([statusCode, json().state, headers["preference-applied"]]).toEqual([200, "queued", "wait=0"]);
  });

  it("compares If-None-Match after the wait", async () => {
    const { id } = await add();
    const { etag } = (await app.inject(`/tasks/${id}`)).headers;
    const response = get(id, "wait=30", { "if-none-match": etag });
    await turn();
    await store.update(id, { state: "canceled" });
    expect((await response).statusCode).toBe(200);
  });

  it("responds with 404 if the task is deleted meanwhile, or does not exist", async () => {
    const { id } = await add();
    const response = get(id, "wait=30");
    await turn();
    await store.delete(id);
    expect((await response).statusCode).toBe(404);
    expect((await get("x", "wait=30")).statusCode).toBe(404);
  });

  it("also waits until the files are in the library, or that fails", async () => {
    const { store: own, folder, files, open, add: addFilm, dir } = createLibraryHarness();
    const library = await open();
    const withLibrary = await buildApp({ store: own, files, library });
    onTestFinished(() => withLibrary.close());
    const [film, other] = [await addFilm(library, { title: "A" }), await addFilm(library, { title: "B" })];
    const wait = (id: string) => withLibrary.inject({ url: `/tasks/${id}`, headers: { prefer: "wait=30" } });
    const early = wait(film.id);
    await turn();
    await film.succeed();
    const late = wait(film.id);
    library.start();
    for (const response of [await early, await late]) expect(response.json().library).toHaveLength(1);
    renameSync(dir, join(folder, "away"));
    await other.succeed();
    const failed = (await wait(other.id)).json();
    expect(failed.library).toBeUndefined();
    expect(failed.file.warnings).toEqual([{ code: "library_failed", message: "there is no folder at LIBRARY_DIR" }]);
  });

  it("waits for the files of all members of a collection, too", async () => {
    const { store: own, files, open, add: addFilm } = createLibraryHarness();
    const library = await open();
    const withLibrary = await buildApp({ store: own, files, library });
    onTestFinished(() => withLibrary.close());
    const film = await addFilm(library, { title: "A" });
    const { id } = await own.create(newTask(pageUrl, { entries: "all" }, new Date()));
    const { lease } = (await own.claim({ leaseMs: 60_000 }))!;
    const counts = { queued: 0, running: 0, succeeded: 0, failed: 0, canceled: 0 };
    await own.update(id, { kind: "collection", counts, growth: { slice: { offset: 0, made: 0 } } }, { lease });
    const member = { index: 1, task: newTask("https://example.com/watch", {}, new Date()) };
    await own.grow(id, { lease, members: [member], isReusing: true, growth: null });
    const wait = async () => {
      const { statusCode, json } = await withLibrary.inject({ url: `/tasks/${id}`, headers: { prefer: "wait=30" } });
      return [statusCode, json().state, (await own.get(film.id))?.library?.length];
    };
    const early = wait();
    await turn();
    await film.succeed();
    const late = wait();
    library.start();
    for (const response of [early, late, late.then(wait)]) expect(await response).toEqual([200, "succeeded", 1]);
  });

  it("does not hold up the end of the service", async () => {
    const { id } = await add();
    const response = get(id, "wait=30");
    await turn();
    await app.close();
    expect((await response).json().state).toBe("queued");
  });

  it("listens to the store once, however many wait, and forgets those that go away", async () => {
    const before = listening;
    const { id } = await add();
    const port = await listenApp(app);
    const clients = Array.from({ length: 20 }, () => {
      const client = request({ port, path: `/tasks/${id}`, headers: { prefer: "wait=60" } });
      client.on("error", () => {});
      client.end();
      return client;
    });
    const [kept] = clients;
    const answered = new Promise<number | undefined>((resolve) => {
      kept!.on("response", (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    await Promise.all(clients.map((client) => new Promise((resolve) => client.on("finish", resolve))));
    for (const client of clients.slice(1)) client.destroy();
    await turn();
    await store.update(id, { state: "canceled" });
    expect(await answered).toBe(200);
    expect(listening).toBe(before);
  });

  it.each([
    [undefined, null],
    ["", null],
    ["wait=10", 10],
    ["WAIT = 10", 10],
    ['wait="7"', 7],
    ["wait=61", 60],
    ["wait=999999999999999999999", 60],
    ["wait=0", 0],
    ["respond-async, wait=5", 5],
    ["wait=5; foo=bar, wait=6", 5],
    ["wait", null],
    ["wait=", null],
    ["wait=-1", null],
    ["wait=1.5", null],
    ["wait=x, wait=5", null],
    ['foo="a, wait=5"', null],
    ["foo; wait=5", null],
    ["wait; foo=5", null],
    ["wait=x; foo=5", null],
    ['wait="7"; foo', 7],
    ['wait="7', null],
    ['wait=7"', null],
    ['wait=""', null],
    ["await=5", null],
    ['foo="a\\"b", wait=5', 5],
    ['foo="a, wait=5', null],
    ['wait=5, foo="a\\', 5],
    // Quadratic time would be hours.
    ['\\"'.repeat(1_000_000), null],
    ['"\\'.repeat(1_000_000), null],
  ])("reads %.40j", (prefer, seconds) => {
    expect(parseWait(prefer)).toBe(seconds);
  });
});
