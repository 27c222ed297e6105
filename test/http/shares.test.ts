import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type AppOptions, buildApp } from "./app.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import type { HttpClient } from "../../src/net/client.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { pageInfo } from "../page-info.ts";
import { openEvents } from "./event-client.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postBatch, postTask } from "./requests.ts";
import { listenApp, openApp } from "./open-app.ts";

const infoTimeoutMs = 300;

/** Opens the service with keys of eve, who is greedy, and of bob. */
async function openShared({ store = createMemoryStore(), ...options }: AppOptions) {
  const keys = await openKeyRing({ keys: store.keys });
  const app = await buildApp({ store, keys, ...options });
  onTestFinished(async () => {
    await app.close();
    keys.close();
  });
  const eve = await addKey(store, "eve");
  const bob = await addKey(store, "bob");
  await keys.refresh();
  return { app, store, eve: eve.headers, bob: bob.headers };
}

/** Sends 20 requests at once; returns in how many turns of the event loop they are answered. */
async function countTurns(send: () => PromiseLike<unknown>): Promise<number> {
  const turns = new Set<number>();
  let turn = 0;
  const all = Promise.all(Array.from({ length: 20 }, () => send().then(() => turns.add(turn)))).then(() => "all");
  while ((await Promise.race([all, setImmediate("turn")])) === "turn") turn += 1;
  return turns.size;
}

test("a key whose requests wait takes half of the connections at most; another one always finds some", async () => {
  const { app, store, eve, bob } = await openShared({ maxConnections: 20 });
  const { id } = await store.create(newTask(pageUrl, {}, new Date(), "eve"));
  const port = await listenApp(app);
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  const ask = async (path: string, { authorization }: typeof eve) => {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    const fields = `Host: localhost\r\nAuthorization: ${authorization}\r\nPrefer: wait=60`;
    socket.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n\r\n`);
    const [first] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => ["closed"])]);
    return String(first).slice(0, 12);
  };
  const statuses = new Map<string, number>();
  const count = (status: string) => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const waiting = Array.from({ length: 18 }, () => ask(`/tasks/${id}`, eve).then(count));
  // The others have no response yet.
  await vi.waitUntil(() => statuses.get("HTTP/1.1 429") === 8, 60_000);
  for (let n = 0; n < 5; n += 1) expect(await ask("/tasks/", bob)).toBe("HTTP/1.1 200");
  await store.update(id, { state: "canceled" });
  await Promise.all(waiting);
  expect(statuses.get("HTTP/1.1 200")).toBe(10);
  expect(await ask(`/tasks/${id}`, eve)).toBe("HTTP/1.1 200");
});

test.each([
  ["tasks", "/tasks/none", "GET"],
  ["new tasks", "/tasks/", "POST"],
] as const)("however many %s a key asks for at once, another key waits for few of them", async (_, url, method) => {
  const { app, eve, bob } = await openShared({});
  let answered = 0;
  const ask = async (headers: typeof eve) => {
    await app.inject({ method, url, headers });
    return (answered += 1);
  };
  const greedy = Array.from({ length: 300 }, () => ask(eve));
  expect(await ask(bob)).toBeLessThan(60);
  await Promise.all(greedy);
  expect(answered).toBe(301);
});

test("a request whose client leaves while it waits for its turn is not begun", async () => {
  const asked: string[] = [];
  const memory = createMemoryStore();
  const store: TaskStore = { ...memory, get: (id) => (asked.push(id), memory.get(id)) };
  const { app, eve: headers } = await openShared({ store });
  const ask = async (url: string, signal?: AbortSignal) =>
    (await app.inject({ url, headers, ...(signal && { signal }) })).statusCode;
  const leaving = new AbortController();
  const before = Array.from({ length: 100 }, () => ask("/tasks/?limit=1"));
  const left = ask("/tasks/left", leaving.signal);
  const after = ask("/tasks/after");
  leaving.abort();
  await expect(left).rejects.toThrow("aborted");
  expect(await after).toBe(404);
  expect(new Set(await Promise.all(before))).toEqual(new Set([200]));
  expect(asked).toEqual(["after"]);
});

/** Opens the service with links to streams of tasks of eve that wait. */
async function openLinks(count: number) {
  const { app, store, eve, bob } = await openShared({ maxConnections: 8 });
  const tasks = Array.from({ length: count }, () => store.create(newTask(pageUrl, {}, new Date(), "eve")));
  const ids = (await Promise.all(tasks)).map(({ id }) => id);
  const payload = { file: "stream", expires_in: 60 };
  const newLink = async (id: string) =>
    String((await app.inject({ method: "POST", url: `/tasks/${id}/links`, headers: eve, payload })).json().url);
  const links: string[] = [];
  for (const id of ids) links.push(await newLink(id));
  // It is sent only when its response is asked for.
  const read = (url: string) => app.inject(url).then(({ statusCode }) => statusCode);
  const end = () => Promise.all(ids.map((id) => store.update(id, { state: "canceled" })));
  return { app, links, bob, read, end };
}

test("a link whose readers wait takes a quarter of the connections at most; another link still works", async () => {
  const { app, links, read, end } = await openLinks(2);
  const [first = "", second = ""] = links;
  const waiting = [read(first), read(first)];
  expect(await read(`${first}?again`)).toBe(429);
  const other = read(second);
  await app.inject("/health/live");
  await end();
  for (const status of [...waiting, other]) expect(await status).not.toBe(429);
});

test("the links of a key together take half of the connections at most; another key always finds some", async () => {
  const { app, links, bob, read, end } = await openLinks(8);
  const statuses: number[] = [];
  const waiting = [...links, ...links].map(async (url) => void statuses.push(await read(url)));
  await vi.waitUntil(() => statuses.length === 12, 60_000);
  expect(new Set(statuses)).toEqual(new Set([429]));
  expect((await app.inject({ url: "/tasks/", headers: bob })).statusCode).toBe(200);
  await end();
  await Promise.all(waiting);
  expect(statuses.filter((status) => status === 404)).toHaveLength(4);
});

test("without keys, requests that wait may take all connections", async () => {
  const store = createMemoryStore();
  const app = await openApp({ store, maxConnections: 4 });
  const { id } = await store.create(newTask(pageUrl, {}, new Date()));
  const headers = { prefer: "wait=60" };
  const read = () => app.inject({ url: `/tasks/${id}`, headers }).then(({ statusCode }) => statusCode);
  const waiting = Array.from({ length: 4 }, read);
  expect((await app.inject("/tasks/")).statusCode).toBe(200);
  await store.update(id, { state: "canceled" });
  expect(await Promise.all(waiting)).toEqual([200, 200, 200, 200]);
});

/** A resolver that reads pages whose URL ends with "slow" until the request is aborted. */
function createSlowResolver() {
  const stub = createStubResolver();
  let slow = 0;
  const resolver: Resolver = {
    ...stub,
    async resolve(url, context) {
      if (!url.search.includes("slow")) return stub.resolve(url, context);
      slow += 1;
      const { promise, reject } = Promise.withResolvers<never>();
      context.signal.addEventListener("abort", () => reject(context.signal.reason));
      return promise;
    },
  };
  return { resolver, slowReads: () => slow };
}

/** A client whose requests are not answered. */
function createSilentClient() {
  const fetched: string[] = [];
  const client: HttpClient = {
    async get(url, { signal }) {
      fetched.push(url.pathname);
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      return promise;
    },
    close: async () => {},
  };
  return { client, fetched };
}

/** A client whose responses are images. */
function createImageClient() {
  const fetched: string[] = [];
  const client: HttpClient = {
    async get(url) {
      fetched.push(url.pathname);
      async function* body() {
        yield Buffer.from("\x89PNG\r\n\x1A\n", "latin1");
      }
      return { url, status: 200, headers: new Map(), body: body(), release: () => {} };
    },
    close: async () => {},
  };
  return { client, fetched };
}

/** Stops the time of requests for the rest of the test; returns what ends it for so many that were sent. */
function stopTime(): (requests: number) => Promise<void> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  return async (requests) => {
    // At least one begins in each turn of the event loop, and one that begins later would wait for ever.
    for (let turn = 0; turn < 2 * requests; turn += 1) await setImmediate();
    vi.advanceTimersByTime(infoTimeoutMs);
  };
}

describe("owners share", () => {
  test.each([
    ["long bodies", { url: pageUrl, note: "x".repeat(20_000) }, postTask],
    ["batches", { urls: Array.from({ length: 50 }, (_, n) => `${pageUrl}?${n}`) }, postBatch],
  ])("the processor: many %s of one hold up another for two of them at most", async (_name, body, post) => {
    const { app, store, eve, bob } = await openShared({});
    const { create } = store;
    // As a store that writes to a disk.
    store.create = (...given) => setImmediate().then(() => create(...given));
    const answered: string[] = [];
    const send = async (name: string, headers: Record<string, string>) => {
      expect((await post(app, body, headers)).statusCode).toBeLessThan(300);
      answered.push(name);
    };
    const greedy = Array.from({ length: 20 }, () => send("eve", eve));
    await Promise.all([...greedy, send("bob", bob)]);
    expect(answered.indexOf("bob")).toBeLessThanOrEqual(2);
  });

  test("turns of the event loop: in each, one long body is read or one long page is told", async () => {
    const description = "x".repeat(20_000);
    const resolver: Resolver = { ...createStubResolver(), resolve: async ({ href: url }) => ({ url, description }) };
    const { app, eve } = await openShared({ resolver });
    // It is refused, as tasks of several turns may be stored, and then answered, together.
    const post = () => postTask(app, { url: "none", note: description }, eve);
    const get = () => app.inject({ url: `/info?url=${pageUrl}`, headers: eve });
    await get();
    expect(await countTurns(post)).toBe(20);
    expect(await countTurns(get)).toBe(20);
  });

  test("the long bodies of batches that are in memory; short ones do not wait", async () => {
    const { app, eve, bob } = await openShared({});
    const port = await listenApp(app);
    const long = { urls: [pageUrl], note: "x".repeat(100_000) };
    const head = ["POST /tasks/batch HTTP/1.1", "host: localhost", "content-type: application/json"];
    const key = `authorization: ${eve["authorization"]}`;
    const stalled = Array.from({ length: 16 }, () => connect(port, "127.0.0.1"));
    for (const socket of stalled) {
      const arrived = once(app.server, "request");
      socket.write(`${[...head, key, "content-length: 100000"].join("\r\n")}\r\n\r\n{`);
      await arrived;
    }
    const answered: string[] = [];
    const send = async (name: string, body: object, headers: Record<string, string>) => {
      expect((await postBatch(app, body, headers)).statusCode).toBe(200);
      answered.push(name);
    };
    const last = send("eve's long one", long, eve);
    await send("bob's long one", long, bob);
    await send("eve's short one", { urls: [pageUrl] }, eve);
    expect(answered).toEqual(["bob's long one", "eve's short one"]);
    for (const socket of stalled) socket.destroy();
    await last;
  });

  test("turns of the event loop: in each, one batch is refused", async () => {
    const { app, eve } = await openShared({});
    const post = () => postBatch(app, { urls: Array.from({ length: 100 }, () => "none") }, eve);
    expect(await countTurns(post)).toBe(20);
  });

  test("the pages that are read at a time", async () => {
    const { resolver, slowReads } = createSlowResolver();
    const { app, eve, bob } = await openShared({ resolver, infoConcurrency: 4, infoTimeoutMs });
    const endTime = stopTime();
    const get = (headers: Record<string, string>, page: string) =>
      app.inject({ url: `/info?url=${encodeURIComponent(`${pageUrl}?${page}`)}`, headers });
    const eves = Array.from({ length: 12 }, (_, n) => get(eve, `slow${n}`));
    await expect.poll(slowReads).toBe(4);
    const bobs = await Promise.all([get(bob, "one"), get(bob, "two")]);
    expect(bobs.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    await endTime(12);
    const refused = (await Promise.all(eves)).filter(({ statusCode }) => statusCode === 429);
    expect(refused).toHaveLength(8);
    expect(refused[0]?.headers["retry-after"]).toBe("1");
  });

  test("no reading of a page: neither its age nor its content tells an owner what others read", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    let reads = 0;
    const stub = createStubResolver();
    const resolver: Resolver = {
      ...stub,
      resolve: async (url) => ({ url: url.href, resolver: `read ${(reads += 1)}` }),
    };
    const { app, eve, bob } = await openShared({ resolver, infoCacheTtlS: 300 });
    const get = async (headers: Record<string, string>) => {
      const response = await app.inject({ url: `/info?url=${encodeURIComponent(pageUrl)}`, headers });
      return [response.headers["age"], response.json().resolver];
    };
    expect(await get(bob)).toEqual(["0", "read 1"]);
    vi.advanceTimersByTime(200_000);
    expect(await get(eve)).toEqual(["0", "read 2"]);
    vi.advanceTimersByTime(200_000);
    expect(await get(eve)).toEqual(["200", "read 2"]);
    expect(await get(bob)).toEqual(["0", "read 3"]);
  });

  test("no image: that it comes at once does not tell an owner what others read", async () => {
    const { client, fetched } = createImageClient();
    const thumbnails = [{ url: "https://images.example.com/a", width: 640, height: 360 }];
    const resolver: Resolver = { ...createStubResolver(), resolve: async () => pageInfo({ thumbnails }) };
    const { app, eve, bob } = await openShared({ client, resolver });
    const get = async (headers: Record<string, string>) => {
      const response = await app.inject({ url: `/info/thumbnail?url=${encodeURIComponent(pageUrl)}`, headers });
      return [response.statusCode, fetched.length];
    };
    expect(await get(bob)).toEqual([200, 1]);
    expect(await get(eve)).toEqual([200, 2]);
    expect([await get(eve), await get(bob)]).toEqual([
      [200, 2],
      [200, 2],
    ]);
  });

  test("the event streams", async () => {
    const { app, eve, bob } = await openShared({ maxEventStreams: 4 });
    await app.listen({ host: "127.0.0.1", port: 0 });
    const statusOf = async (headers: Record<string, string>) => (await openEvents(app, headers)).response.statusCode;
    for (let n = 0; n < 4; n += 1) expect(await statusOf(eve)).toBe(200);
    expect(await statusOf(eve)).toBe(429);
    expect([await statusOf(bob), await statusOf(bob), await statusOf(bob)]).toEqual([200, 200, 429]);
  });

  test("the thumbnails that are fetched at a time", async () => {
    const { client, fetched } = createSilentClient();
    const { app, store, eve, bob } = await openShared({ client, infoTimeoutMs });
    const endTime = stopTime();
    const get = async (headers: Record<string, string>, owner: string, name: string) => {
      const { id } = await store.create(newTask(pageUrl, {}, new Date(), owner));
      const thumbnails = [{ url: `https://images.example.com/${name}`, width: 640, height: 360 }];
      await store.update(id, { info: pageInfo({ thumbnails }) });
      return app.inject({ url: `/tasks/${id}/thumbnail`, headers });
    };
    const eves = Array.from({ length: 20 }, (_, n) => get(eve, "eve", `eve${n}`));
    await expect.poll(() => fetched.length).toBe(8);
    const bobs = Array.from({ length: 4 }, (_, n) => get(bob, "bob", `bob${n}`));
    await expect.poll(() => countBobs(fetched)).toBe(4);
    await endTime(24);
    await Promise.all([...eves, ...bobs]);
  });

  test("the pages that are read for thumbnails, also when images fail all at once", async () => {
    const { client, fetched } = createSilentClient();
    const read: string[] = [];
    const resolver: Resolver = {
      ...createStubResolver(),
      async resolve(url) {
        read.push(url.pathname);
        return pageInfo({
          thumbnails: [{ url: `https://images.example.com${url.pathname}`, width: null, height: null }],
        });
      },
    };
    const { app, eve, bob } = await openShared({ client, resolver, infoTimeoutMs });
    const endTime = stopTime();
    const get = (headers: Record<string, string>, name: string) =>
      app.inject({ url: `/info/thumbnail?url=${encodeURIComponent(`https://films.example.com/${name}`)}`, headers });
    const eves = Array.from({ length: 100 }, (_, n) => get(eve, `eve${n}`));
    await expect.poll(() => fetched.length).toBe(8);
    const bobs = Array.from({ length: 4 }, (_, n) => get(bob, `bob${n}`));
    await expect.poll(() => countBobs(read)).toBe(4);
    await endTime(104);
    const responses = await Promise.all([...eves, ...bobs]);
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(104).fill(504));
    expect(fetched).toEqual(read);
    expect(countBobs(read)).toBe(4);
    expect(read.length).toBeLessThan(30);
  });
});

function countBobs(paths: readonly string[]): number {
  return paths.filter((path) => path.startsWith("/bob")).length;
}

test("changes of tasks of a key wait while many are in the store, and not for those of another key", async () => {
  const inner = createMemoryStore();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  let [inStore, most] = [0, 0];
  const store: TaskStore = {
    ...inner,
    async update(id, ...change) {
      const owner = (await inner.get(id))?.owner;
      inStore += 1;
      most = Math.max(most, inStore);
      if (owner === "eve") await gate;
      inStore -= 1;
      return inner.update(id, ...change);
    },
  };
  const { app, eve, bob } = await openShared({ store });
  const add = async (owner: string) => (await store.create(newTask(pageUrl, {}, new Date(), owner))).id;
  const cancel = (id: string, headers: typeof eve) =>
    app.inject({ method: "POST", url: `/tasks/${id}/cancel`, headers }).then(({ statusCode }) => statusCode);
  const ids = await Promise.all(Array.from({ length: 100 }, () => add("eve")));
  const canceled = ids.map((id) => cancel(id, eve));
  await vi.waitUntil(() => inStore === 64, 60_000);
  expect(await cancel(await add("bob"), bob)).toBe(200);
  expect(inStore).toBe(64);
  open();
  expect(new Set(await Promise.all(canceled))).toEqual(new Set([200]));
  expect(most).toBeLessThanOrEqual(65);
});
