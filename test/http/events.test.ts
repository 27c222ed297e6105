import { EventEmitter, once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Writable } from "node:stream";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { App } from "../../src/http/app.ts";
import { type AppOptions } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { changeEvent, createTaskEvents } from "../../src/feed/task-events.ts";
import { createEventStreams } from "../../src/http/responses/event-streams.ts";
import type { Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { samplePageInfo } from "../contracts/task-store/page-info.ts";
import { openEvents, type ServerEvent } from "./event-client.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postTask } from "./requests.ts";
import { openApp } from "./open-app.ts";

afterEach(() => void vi.useRealTimers());

async function listen(options: AppOptions = {}): Promise<App> {
  const app = await openApp(options);
  await app.listen({ host: "127.0.0.1", port: 0 });
  return app;
}

async function post(app: App, n: number | string = 1): Promise<Task> {
  return (await postTask(app, { url: `${pageUrl}?n=${n}` })).json();
}

/** A task as an event has it. */
type ChangedTask = Omit<Task, "info"> & Partial<Pick<Task, "info">>;

function tasksOf(events: readonly ServerEvent[]): ChangedTask[] {
  return events.filter(({ type }) => type === "task").map(({ data }) => JSON.parse(data));
}

function withoutInfo(task: Task) {
  return { ...task, info: undefined };
}

function connectionsOf(app: App): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_, count) => resolve(count)));
}

/** Opens a stream and takes its first block, which has the reconnection time, and the id if the client gave none. */
async function watch(app: App, headers: Record<string, string> = {}, query?: string) {
  const client = await openEvents(app, headers, query);
  const id = "last-event-id" in headers ? undefined : expect.any(String);
  const [start] = await client.take(1);
  expect(start).toEqual({ type: "message", id, data: "" });
  return { ...client, start: start?.id ?? "" };
}

describe("GET /tasks/events", () => {
  it("forgets clients that disconnect before it begins", async () => {
    const store = createMemoryStore();
    const { headers } = await addKey(store, "anna", { limits: { rate: 100 } });
    const waiting = new EventEmitter();
    const counted = Promise.withResolvers<void>();
    const keys: typeof store.keys = {
      ...store.keys,
      async countRequest(name) {
        waiting.emit("request");
        await counted.promise;
        return store.keys.countRequest(name);
      },
    };
    const app = await listen({ store: { ...store, keys }, maxEventStreams: 1 });
    for (let n = 0; n < 2; n++) {
      const arrived = once(waiting, "request");
      const closed = once(app.server, "connection").then(([socket]) => once(socket, "close"));
      const { port } = app.server.address() as AddressInfo;
      const call = request({ port, path: "/tasks/events", headers, agent: false }).end();
      call.on("error", () => {});
      await arrived;
      call.destroy();
      await closed;
    }
    counted.resolve();
    const { response } = await openEvents(app, headers);
    expect(response.statusCode).toBe(200);
  });

  it("is an event stream that no proxy may cache or buffer", async () => {
    const { response } = await watch(await listen());
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
  });

  it("sends each change of a task as it happens, and its deletion", async () => {
    const app = await listen();
    const client = await watch(app);
    const created = await post(app);
    const url = `/tasks/${created.id}`;
    const canceled = (await app.inject({ method: "POST", url: `${url}/cancel` })).json();
    const queued = (await app.inject({ method: "POST", url: `${url}/retry` })).json();
    await app.inject({ method: "DELETE", url });
    const events = await client.take(4);
    expect(events.map(({ type }) => type)).toEqual(["task", "task", "task", "deleted"]);
    expect(events.map(({ data }) => data)).toEqual(
      [created, withoutInfo(canceled), withoutInfo(queued), { id: created.id }].map((task) => JSON.stringify(task)),
    );
    expect(new Set(events.map(({ id }) => id)).size).toBe(4);
  });

  it("leaves out `info` while it is the same: whoever lists after opening the stream knows all", async () => {
    const store = createMemoryStore();
    const app = await listen({ store });
    const early = await post(app);
    await store.claim({ leaseMs: 60_000 });
    const client = await watch(app);
    const listed = (await app.inject("/tasks/")).json<{ tasks: Task[] }>().tasks;
    const known = new Map<string, ChangedTask>(listed.map((task) => [task.id, task]));
    const late = await post(app);
    await store.claim({ leaseMs: 60_000 });
    await store.update(early.id, { attempts: 7 });
    await store.update(late.id, { info: samplePageInfo() });
    await store.update(late.id, { attempts: 8 });
    await store.update(late.id, { state: "succeeded" });
    const events = await client.take(6);
    expect(tasksOf(events).map(({ info }) => info)).toEqual([
      null,
      undefined,
      undefined,
      samplePageInfo(),
      undefined,
      undefined,
    ]);
    for (const task of tasksOf(events)) {
      const { info = known.get(task.id)?.info ?? null } = task;
      known.set(task.id, { ...task, info });
    }
    const now = (await app.inject("/tasks/")).json<{ tasks: Task[] }>().tasks;
    expect([...known.values()].toReversed()).toEqual(now);
  });

  it("replays the `info` that a client missed", async () => {
    const store = createMemoryStore();
    const app = await listen({ store });
    const client = await watch(app);
    client.hangUp();
    const { id } = await post(app);
    await store.update(id, { info: samplePageInfo() });
    await store.update(id, { attempts: 2 });
    const back = await watch(app, { "last-event-id": client.start });
    const missed = tasksOf(await back.take(3)).map(({ info }) => info);
    expect(missed).toEqual([null, samplePageInfo(), undefined]);
  });

  it("sends the same to all clients", async () => {
    const app = await listen();
    const clients = [await watch(app), await watch(app), await watch(app)];
    await post(app);
    const [first, ...others] = await Promise.all(clients.map((client) => client.take(1)));
    for (const other of others) expect(other).toEqual(first);
  });

  it("sends only changes of the requested task", async () => {
    const app = await listen();
    const [one, two] = [await post(app, 1), await post(app, 2)];
    const client = await watch(app, {}, `?task=${two.id}`);
    await app.inject({ method: "DELETE", url: `/tasks/${one.id}` });
    await app.inject({ method: "DELETE", url: `/tasks/${two.id}` });
    expect((await client.take(1))[0]?.data).toBe(JSON.stringify({ id: two.id }));
  });

  it("ends the stream of a task that was deleted, which has no other one", async () => {
    const app = await listen();
    const { id } = await post(app);
    const client = await watch(app, {}, `?task=${id}`);
    await app.inject({ method: "DELETE", url: `/tasks/${id}` });
    const [deleted, ...others] = await client.rest();
    expect(deleted).toMatchObject({ type: "deleted", data: JSON.stringify({ id }) });
    expect(others).toEqual([]);
    const again = { "last-event-id": deleted!.id! };
    for (const headers of [{}, again, { "last-event-id": "unknown-1" }]) {
      const response = await app.inject({ url: `/tasks/events?task=${id}`, headers });
      expect([response.statusCode, response.json().code]).toEqual([404, "not_found"]);
    }
    const late = await watch(app, { "last-event-id": client.start }, `?task=${id}`);
    expect((await late.rest()).map(({ type }) => type)).toEqual(["deleted"]);
  });

  it("resumes after Last-Event-ID, each change once and in order, whenever the client reconnects", async () => {
    const app = await listen();
    const client = await watch(app);
    const posted = [await post(app, 0)];
    let [last] = await client.take(1);
    client.hangUp();
    const seen = tasksOf([last!]);
    for (let n = 1; n <= 20; n += 1) {
      posted.push(await post(app, `${n} missed`));
      const connecting = watch(app, { "last-event-id": last?.id ?? "" });
      posted.push(await post(app, `${n} meanwhile`));
      const back = await connecting;
      posted.push(await post(app, `${n} after`));
      const events = await back.take(3);
      last = events.at(-1);
      seen.push(...tasksOf(events));
      back.hangUp();
    }
    expect(seen).toEqual(posted);
  });

  it.each([
    ["of another feed", "0badf00d-1"],
    ["that was never given", "nonsense"],
    ["without a character", ""],
  ])("sends a reset after an id %s", async (_, id) => {
    const app = await listen();
    await post(app, "missed");
    const client = await watch(app, { "last-event-id": id });
    const task = await post(app, "next");
    const [reset, next] = await client.take(2);
    expect(reset).toMatchObject({ type: "reset", data: "{}" });
    expect(tasksOf([next!])).toEqual([task]);
    const back = await watch(app, { "last-event-id": String(reset?.id) });
    expect(await back.take(1)).toEqual([next]);
  });

  it("sends a reset if it no longer has what was missed", async () => {
    const store = createMemoryStore({ events: createTaskEvents({ maxEvents: 3 }) });
    const start = store.events.lastId;
    const app = await listen({ store });
    for (let n = 0; n < 4; n += 1) await post(app, n);
    const client = await watch(app, { "last-event-id": start });
    expect((await client.take(1))[0]?.type).toBe("reset");
  });

  it("loses nothing for a client that reads slowly, and buffers nothing for it", async () => {
    const store = createMemoryStore();
    const app = await listen({ store });
    const accepted = once(app.server, "connection");
    const client = await watch(app);
    const [socket] = await accepted;
    client.response.pause();
    const count = 3_000;
    const filler = "x".repeat(4_000);
    const urls: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const task = newTask(`https://example.com/${n}?${filler}`, {}, new Date());
      urls.push(task.url);
      await store.create(task);
      // Like requests, which arrive in several turns.
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    expect(socket.writableLength).toBeLessThan(100_000);
    client.response.resume();
    expect(tasksOf(await client.take(count)).map(({ url }) => url)).toEqual(urls);
  });

  it("lets other requests have their turn while a client on a fast network catches up, and then has sent it all", async () => {
    const events = createTaskEvents();
    const start = events.lastId;
    const json = JSON.stringify("x".repeat(4_000));
    for (let n = 0; n < 1_000; n += 1)
      events.publish({ ...changeEvent(newTask(pageUrl, {}, new Date()), json), taskId: `${n}` });
    const streams = createEventStreams(events);
    onTestFinished(() => streams.close());
    let received = "";
    const client = new Writable({
      write(chunk, _encoding, done) {
        received += chunk;
        process.nextTick(done);
      },
    });
    streams.open(client, { after: start });
    await new Promise(setImmediate);
    expect(received.length).toBeLessThan(400_000);
    await expect.poll(() => received.split("event: task").length).toBe(1_001);
  });

  it("leaves other requests time while hundreds of streams are written", async () => {
    const events = createTaskEvents();
    const start = events.lastId;
    for (let n = 0; n < 200; n += 1) {
      const json = JSON.stringify("x".repeat(4_000));
      events.publish({ ...changeEvent(newTask(pageUrl, {}, new Date()), json), taskId: `${n}` });
    }
    const streams = createEventStreams(events);
    onTestFinished(() => streams.close());
    let turns = 0;
    let left = 200 * 200 * 4_000;
    const { promise: written, resolve: onWritten } = Promise.withResolvers<void>();
    const write: Writable["_write"] = (chunk: Buffer, _encoding, done) => {
      left -= chunk.length;
      if (left <= 0) onWritten();
      process.nextTick(done);
    };
    for (let n = 0; n < 200; n += 1) streams.open(new Writable({ write }), { after: start });
    const count = () => {
      turns += 1;
      if (left > 0) setImmediate(count);
    };
    setImmediate(count);
    await written;
    expect(turns).toBeGreaterThan(2_000);
  });

  it("sends a heartbeat every 15 seconds, with the id to resume from", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const app = await listen();
    const client = await watch(app);
    await post(app);
    const [event] = await client.take(1);
    vi.advanceTimersByTime(15_000);
    expect(await client.take(1)).toEqual([{ type: "message", id: event?.id, data: "" }]);
  });

  it("disconnects a client that reads nothing for the send time-out, and no other", async () => {
    const store = createMemoryStore();
    const app = await listen({ store, sendTimeoutMs: 3_000 });
    const idle = await watch(app);
    const stuck = connect((app.server.address() as AddressInfo).port, "127.0.0.1");
    onTestFinished(() => void stuck.destroy());
    stuck.on("error", () => {});
    stuck.write("GET /tasks/events HTTP/1.1\r\nhost: a\r\n\r\n");
    await once(stuck, "readable");
    expect(await connectionsOf(app)).toBe(2);
    const big = "x".repeat(8_000);
    for (let n = 0; n < 1_500; n += 1) {
      await store.create(newTask(`https://example.com/${n}?${big}`, {}, new Date()));
      if (n % 50 === 49) await idle.take(50);
    }
    await expect.poll(() => connectionsOf(app)).toBe(1);
    await post(app);
    await idle.take(1);
  });

  it("refuses more clients than the limit, until one leaves", async () => {
    const app = await listen({ maxEventStreams: 2 });
    const first = await watch(app);
    await watch(app);
    const refused = await app.inject("/tasks/events");
    expect(refused.json()).toMatchObject({ status: 429, code: "too_many_requests" });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    first.hangUp();
    await expect.poll(async () => (await openEvents(app)).response.statusCode).toBe(200);
  });

  it("refuses a client that does not accept event streams", async () => {
    const app = await openApp();
    const response = await app.inject({ url: "/tasks/events", headers: { accept: "text/html" } });
    expect(response.json()).toMatchObject({ status: 406, code: "not_acceptable" });
    expect(response.json().detail).toContain("text/event-stream");
  });

  it("responds to HEAD at once", async () => {
    const app = await openApp();
    const response = await app.inject({ method: "HEAD", url: "/tasks/events" });
    expect([response.statusCode, response.headers["content-type"]]).toEqual([200, "text/event-stream"]);
  });

  it("ends when the service stops, which does not wait for its clients", async () => {
    const app = await listen({ finishMs: 60_000 });
    const client = await watch(app);
    await post(app);
    const closed = app.close();
    expect(tasksOf(await client.rest())).toHaveLength(1);
    await closed;
  });

  it("ends its streams while tasks still change", async () => {
    const store = createMemoryStore();
    const app = await listen({ store });
    const client = await watch(app);
    const change = () => store.create(newTask(pageUrl, {}, new Date()));
    await change();
    const changeOften = async () => {
      for (let n = 0; n < 100; n += 1) await change();
    };
    await Promise.all([changeOften(), app.close()]);
    const sent = tasksOf(await client.rest()).length;
    expect(sent).toBeGreaterThan(0);
    expect(sent).toBeLessThan(100);
  });
});
