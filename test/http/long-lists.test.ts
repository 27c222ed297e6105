import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { connect } from "node:net";
import timers, { setImmediate } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { type AppOptions } from "./app.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { formatOf } from "../formats.ts";
import { pageInfo } from "../page-info.ts";
import { addKey } from "./keys.ts";
import { withApp } from "./failing-app.ts";
import { getInfo, pageUrl, postBatch, postTask } from "./requests.ts";
import { listenApp, openApp } from "./open-app.ts";

/** Opens the service with 12 tasks whose records have about 110 kB each. */
async function openLong(options: Partial<AppOptions> & { owner?: string } = {}) {
  const { owner, store = createMemoryStore(), ...rest } = options;
  const app = await openApp({ store, ...rest });
  const formats = Array.from({ length: 440 }, (_, n) => formatOf(`f${n}`));
  const ids: string[] = [];
  for (let n = 0; n < 12; n += 1) {
    const { id } = await store.create(newTask(pageUrl, {}, new Date(), owner));
    await store.update(id, { info: pageInfo({ formats }) });
    ids.unshift(id);
  }
  return { app, store, ids };
}

/** Opens the service with keys of eve, who has the long records, and of bob. `pages` counts what is read of the store. */
async function openOwned() {
  const store = createMemoryStore();
  const keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const pages = vi.spyOn(store, "list");
  const { app } = await openLong({ store, keys, owner: "eve" });
  const eve = await addKey(store, "eve");
  const bob = await addKey(store, "bob");
  await keys.refresh();
  const list = ({ headers }: typeof eve, query = "") =>
    app.inject({ url: `/tasks/${query}`, headers, payloadAsStream: true });
  return { app, eve, bob, list, pages };
}

test("a list of long records comes in pages of at most 1,000,000 bytes, each task once", async () => {
  const { app, store, ids } = await openLong();
  const listed: string[] = [];
  let next: string | null = "/tasks/?limit=200";
  let pages = 0;
  while (next !== null) {
    const response = await app.inject(next);
    expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(response.body.length).toBeLessThanOrEqual(1_001_000);
    const page: { tasks: { id: string }[]; next: string | null } = response.json();
    expect(page.tasks[0]).toEqual(await store.get(page.tasks[0]!.id));
    if (page.next !== null) expect(response.headers["link"]).toBe(`<${page.next}>; rel="next"`);
    listed.push(...page.tasks.map(({ id }) => id));
    next = page.next;
    pages += 1;
  }
  expect(listed).toEqual(ids);
  expect(pages).toBe(2);
});

test("a long page is compressed as it is written", async () => {
  const { app } = await openLong();
  const plain = await app.inject("/tasks/");
  const packed = await app.inject({ url: "/tasks/", headers: { "accept-encoding": "gzip" } });
  expect(packed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
  expect(JSON.parse(gunzipSync(packed.rawPayload).toString())).toEqual(plain.json());
});

test("clients that leave while a long page is compressed end their responses alone, whenever they leave", async () => {
  const { app } = await openLong();
  const port = await listenApp(app);
  const errors: unknown[] = [];
  const note = (error: unknown) => void errors.push(error);
  process.on("uncaughtException", note);
  onTestFinished(() => void process.off("uncaughtException", note));
  const leaveAfter = async (turns: number) => {
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /tasks/ HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    for (let turn = 0; turn < turns; turn += 1) await setImmediate();
    socket.destroy();
    await once(socket, "close");
  };
  for (let turns = 0; turns < 400; turns += 12) await Promise.all(Array.from({ length: 4 }, () => leaveAfter(turns)));
  expect(errors).toEqual([]);
});

test.each([
  ["pages", "/tasks/", 6, 20],
  ["records", undefined, 20, 10],
])("other requests are answered between any two parts of many long %s", async (_name, path, count, least) => {
  const { app, ids } = await openLong();
  const urls = Array.from({ length: count }, () => path ?? `/tasks/${ids[0]}`);
  const written = Promise.all(urls.map((url) => app.inject(url))).then(() => "written");
  let answered = 0;
  const answer = () => app.inject("/health/live").then(() => setImmediate("answered"));
  while ((await Promise.race([written, answer()])) === "answered") answered += 1;
  expect(answered).toBeGreaterThan(least);
});

test("the response to a batch with many tasks that existed comes in pieces, between which other requests are answered", async () => {
  const { app } = await openLong();
  const batch = (count: number) =>
    postBatch(app, { urls: Array.from({ length: count }, () => pageUrl), options: { if_exists: "reuse" } });
  const answeredDuring = async (response: ReturnType<typeof batch>) => {
    let answered = 0;
    const answer = () => app.inject("/health/live").then(() => setImmediate("answered"));
    while ((await Promise.race([response.then(() => "written"), answer()])) === "answered") answered += 1;
    return answered;
  };
  const few = await answeredDuring(batch(3));
  const long = batch(300);
  const many = await answeredDuring(long);
  expect(many - few).toBeGreaterThan(20);
  const { results } = (await long).json();
  expect(results).toHaveLength(300);
  expect(new Set(results.map(({ task }: { task: { id: string } }) => task.id)).size).toBe(1);
});

test("of batches whose long responses nobody reads, 8 are in memory; the others wait until those are read", async () => {
  stopTime();
  const store = createMemoryStore();
  const reuse = vi.spyOn(store, "reuse");
  const { app } = await openLong({ store });
  const payload = { urls: Array.from({ length: 20 }, () => pageUrl), options: { if_exists: "reuse" } };
  const ask = async () => app.inject({ method: "POST", url: "/tasks/batch", payload, payloadAsStream: true });
  const asked = Array.from({ length: 12 }, ask);
  await vi.waitUntil(() => reuse.mock.calls.length >= 8 * 20, 60_000);
  for (let turn = 0; turn < 40; turn += 1) await setImmediate();
  expect(reuse).toHaveBeenCalledTimes(8 * 20);
  const counts = asked.map(async (response) => {
    const chunks = (await (await response).stream().toArray()) as Buffer[];
    return JSON.parse(Buffer.concat(chunks).toString()).results.length as number;
  });
  expect(await Promise.all(counts)).toEqual(Array.from({ length: 12 }, () => 20));
  expect(reuse).toHaveBeenCalledTimes(12 * 20);
});

test("a long record that many have waited for is written for one of them in a turn of the event loop", async () => {
  const { app, store, ids } = await openLong();
  const [id = ""] = ids;
  const { stringify } = JSON;
  let written = 0;
  const spy = vi.spyOn(JSON, "stringify").mockImplementation((value: unknown, ...others: unknown[]) => {
    written += Number(typeof value === "object" && value !== null && "id" in value && value.id === id);
    return stringify(value, ...(others as []));
  });
  onTestFinished(() => spy.mockRestore());
  const headers = { prefer: "wait=60" };
  const waiting = Array.from({ length: 20 }, () => app.inject({ url: `/tasks/${id}`, headers }));
  await app.inject("/health/live");
  await store.update(id, { state: "canceled" });
  const answered = Promise.all(waiting).then(() => "answered");
  const perTurn: number[] = [];
  written = 0;
  do {
    perTurn.push(written);
    written = 0;
  } while ((await Promise.race([answered, setImmediate("waiting")])) === "waiting");
  expect(Math.max(...perTurn)).toBeLessThan(5);
});

/** Asks 300 times with `ask`; returns the most records that were in memory at a time, `begun` to be answered and not yet answered. */
async function mostInMemory(ask: () => Promise<unknown>, begun: () => number): Promise<number> {
  let answered = 0;
  let most = 0;
  const before = begun();
  const note = () => {
    most = Math.max(most, begun() - before - answered);
    answered += 1;
  };
  await Promise.all(Array.from({ length: 300 }, () => ask().then(note)));
  return most;
}

test("of a long record that a client asks for hundreds of times, 64 are in memory at a time", async () => {
  const store = createMemoryStore();
  const { app, ids } = await openLong({ store });
  const reads = vi.spyOn(store, "get");
  const headers = { "accept-encoding": "gzip" };
  const begun = () => reads.mock.calls.length;
  expect(await mostInMemory(() => app.inject({ url: `/tasks/${ids[0]}`, headers }), begun)).toBeLessThan(80);
});

test("of an earlier task with a long record that a client posts again hundreds of times, 64 are in memory at a time", async () => {
  const store = createMemoryStore();
  const { app } = await openLong({ store });
  const reuse = vi.spyOn(store, "reuse");
  const body = { url: pageUrl, options: { if_exists: "reuse" } };
  const begun = () => reuse.mock.calls.length;
  expect(await mostInMemory(() => postTask(app, body, { "accept-encoding": "gzip" }), begun)).toBeLessThan(80);
});

test("of long information about a page that a client asks for hundreds of times, 16 are in memory at a time", async () => {
  const formats = Array.from({ length: 440 }, (_, n) => formatOf(`f${n}`));
  let written = 0;
  const info = Object.defineProperty(pageInfo({ formats }), "title", {
    enumerable: true,
    get: () => {
      written += 1;
      return "Otters";
    },
  });
  await withApp({ page: async () => info, infoCacheTtlS: 3_600 }, async (app) => {
    const ask = () => getInfo(app, pageUrl, { "accept-encoding": "gzip" });
    expect((await ask()).body.length).toBeGreaterThan(1_000);
    expect(await mostInMemory(ask, () => written)).toBeLessThan(30);
  });
});

test("a request that waits for its task has no place among the records that are in memory", async () => {
  const { app, ids } = await openLong();
  const headers = { prefer: "wait=60" };
  const waiting = Array.from({ length: 100 }, () => app.inject({ url: `/tasks/${ids[0]}`, headers }));
  expect((await app.inject(`/tasks/${ids[1]}`)).statusCode).toBe(200);
  await app.inject({ method: "POST", url: `/tasks/${ids[0]}/cancel` });
  const states = (await Promise.all(waiting)).map((response) => response.json().state as string);
  expect(new Set(states)).toEqual(new Set(["canceled"]));
});

/** Stops the time after which lists that nobody reads are cut off, for the rest of the test. */
function stopTime(): void {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** Asks for 40 long lists without a key, and reads none. */
async function askForLists() {
  stopTime();
  const store = createMemoryStore();
  const pages = vi.spyOn(store, "list");
  const { app } = await openLong({ store });
  const asked = Array.from({ length: 40 }, () => app.inject({ url: "/tasks/", payloadAsStream: true }));
  await vi.waitUntil(() => pages.mock.calls.length >= 32, 60_000);
  for (let turn = 0; turn < 40; turn += 1) await setImmediate();
  expect(pages).toHaveBeenCalledTimes(32);
  const read = async (response: (typeof asked)[number]) => {
    let length = 0;
    for await (const chunk of (await response).stream()) length += (chunk as Buffer).length;
    return length;
  };
  return { asked, pages, read };
}

test("of long lists that clients without a key do not read, 32 are in memory; the others wait until those are read", async () => {
  const { asked, pages, read } = await askForLists();
  expect(Math.min(...(await Promise.all(asked.map(read))))).toBeGreaterThan(800_000);
  expect(pages).toHaveBeenCalledTimes(40);
});

test("a long list of which its client has read nothing for 5 s while others wait is cut off", async () => {
  const { asked, pages, read } = await askForLists();
  const responses = await Promise.all(asked.slice(0, 32));
  const isOpen = () => responses.map(({ raw }) => !raw.res.destroyed);
  vi.advanceTimersByTime(4_000);
  expect(new Set(isOpen())).toEqual(new Set([true]));
  // Of this one a piece is read.
  responses[0]?.stream().read();
  await setImmediate();
  vi.advanceTimersByTime(2_000);
  expect(isOpen()).toEqual(Array.from({ length: 32 }, (_, n) => n === 0));
  expect(Math.min(...(await Promise.all([asked[0]!, ...asked.slice(32)].map(read))))).toBeGreaterThan(700_000);
  expect(pages).toHaveBeenCalledTimes(40);
});

/**
 * Holds the service's sleeps for the rest of the test: those with a signal last until it is aborted, however long the machine takes; pauses,
 * which have none, until `endPause` resolves. Returns the pauses, milliseconds.
 */
function holdSleeps(endPause: Promise<void> = Promise.resolve()): number[] {
  const pauses: number[] = [];
  const held = vi.spyOn(timers, "setTimeout").mockImplementation(async (ms = 0, value, { signal } = {}) => {
    if (signal === undefined) pauses.push(ms);
    await (signal === undefined ? endPause : signal.aborted || once(signal, "abort"));
    return value!;
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    held.mockRestore();
    syncBuiltinESMExports();
  });
  return pauses;
}

test("long lists that a key asks for at once are sent one after the other, and those of other keys beside them", async () => {
  const { eve, bob, list } = await openOwned();
  holdSleeps();
  const events: string[] = [];
  const read = async (name: string, key: typeof eve) => {
    const response = await list(key);
    events.push(`${name} begins`);
    for await (const _ of response.stream());
    events.push(`${name} ends`);
  };
  await Promise.all([read("first", eve), read("second", eve), read("third", eve), read("bob's", bob)]);
  const ofEve = events.filter((event) => !event.startsWith("bob"));
  expect(ofEve).toEqual(["first", "second", "third"].flatMap((name) => [`${name} begins`, `${name} ends`]));
  expect(events.indexOf("bob's ends")).toBeLessThan(events.indexOf("first ends"));
});

test.each([
  [300, 300],
  [800, 500],
])(
  "the next long list of a key begins after a pause as long as the one before took: %i ms, %i ms",
  async (ms, pause) => {
    const { eve, list, pages } = await openOwned();
    const { promise: paused, resolve: endPause } = Promise.withResolvers<void>();
    const pauses = holdSleeps(paused);
    stopTime();
    const first = await list(eve);
    const second = list(eve);
    vi.advanceTimersByTime(ms);
    for await (const _ of first.stream());
    await vi.waitUntil(() => pauses.length > 0, 60_000);
    for (let turn = 0; turn < 40; turn += 1) await setImmediate();
    expect([pauses, pages.mock.calls.length]).toEqual([[pause], 1]);
    endPause();
    expect((await second).statusCode).toBe(200);
  },
);

test("a list of one long record alone is followed by a pause, a short one by none", async () => {
  const { eve, bob, list } = await openOwned();
  const pauses = holdSleeps();
  const read = async (key: typeof eve, query: string) => {
    const response = await list(key, query);
    for await (const _ of response.stream());
    return (await list(key, query)).statusCode;
  };
  expect(await read(bob, "")).toBe(200);
  expect(pauses).toEqual([]);
  expect(await read(eve, "?limit=1")).toBe(200);
  expect(pauses).not.toEqual([]);
});

test("a long list whose client does not read it holds up the key's next one for a second only", async () => {
  const { eve, list } = await openOwned();
  const unread = await list(eve);
  const next = await list(eve);
  expect(next.statusCode).toBe(200);
  expect(unread.stream().readableEnded).toBe(false);
});

test("a list whose client leaves before its turn is not read from the store, and holds up no other", async () => {
  const { app, eve, list, pages } = await openOwned();
  holdSleeps();
  const port = await listenApp(app);
  const unread = await list(eve);
  const sockets = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const arrived = once(app.server, "request");
      const socket = connect(port, "127.0.0.1");
      socket.write(`GET /tasks/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${eve.headers.authorization}\r\n\r\n`);
      const [, response] = (await arrived) as [unknown, ServerResponse];
      return { socket, left: once(response, "close") };
    }),
  );
  for (const { socket } of sockets) socket.destroy();
  await Promise.all(sockets.map(({ left }) => left));
  const next = list(eve);
  for await (const _ of unread.stream());
  expect((await next).statusCode).toBe(200);
  expect(pages).toHaveBeenCalledTimes(2);
});
