import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { buildApp, buildWorkerApp } from "./app.ts";
import type { App } from "../../src/http/app.ts";
import { type KeyRing, openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { makeFolder } from "../folder.ts";
import { openEvents } from "./event-client.ts";
import { addFinishedTask } from "./finished-task.ts";
import { createStream } from "./made-stream.ts";
import { addKey } from "./keys.ts";
import { pageUrl } from "./requests.ts";
import { listenApp, openApp } from "./open-app.ts";

type Line = Record<string, unknown>;

function openLog() {
  const lines: Line[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { logger: pino({ level: "debug" }, { write }), lines };
}

/** An app with the keys of anna and of an admin, and its log. */
async function start() {
  const { logger, lines } = openLog();
  const store = createMemoryStore();
  const anna = await addKey(store, "anna");
  const root = await addKey(store, "root", { admin: true });
  const app = await buildApp({ store, logger });
  onTestFinished(async () => {
    await app.close();
    await store.close();
  });
  return { app, lines, anna, root };
}

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8::1:2:3:4", "2001:db8:0:0"],
  ["127.0.0.1", undefined],
  ["::1", undefined],
])("the line of a request from %s has ip: %s", async (remoteAddress, ip) => {
  const { app, lines, anna } = await start();
  await app.inject({ url: "/tasks/?limit=1", remoteAddress, headers: anna.headers });
  const { time, pid, hostname, reqId, ms, ...line } = lines[0]!;
  expect([time, pid, hostname, reqId, ms]).not.toContain(undefined);
  expect(line).toEqual({
    level: 30,
    method: "GET",
    path: "/tasks/",
    ...(ip !== undefined && { ip }),
    key: "anna",
    status: 200,
    msg: "request",
  });
});

test("the line has the id of the trace of the request, unless that is invalid", async () => {
  const { app, lines, anna } = await start();
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const valid = `00-${trace}-00f067aa0ba902b7-01`;
  for (const traceparent of [
    valid,
    `${valid}-more`,
    valid.toUpperCase(),
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    "x",
  ])
    await app.inject({ url: "/tasks/", headers: { ...anna.headers, traceparent } });
  expect(lines.map(({ trace_id }) => trace_id)).toEqual([trace, undefined, undefined, undefined, undefined]);
});

test("the line has the name of the key, also of one that may not do this; of a wrong key nothing", async () => {
  const { app, lines, anna, root } = await start();
  const remoteAddress = "192.0.2.7";
  const wrong = { authorization: `Bearer ${anna.secret}x` };
  for (const headers of [root.headers, anna.headers, wrong, {}])
    await app.inject({ url: "/tasks/?owner=root", remoteAddress, headers });
  const cookies = await app.inject({
    method: "POST",
    url: "/session",
    headers: { "content-type": "application/json" },
    payload: JSON.stringify({ key: anna.secret }),
  });
  const [session = ""] = cookies.cookies.map(({ name, value }) => `${name}=${value}`);
  await app.inject({ url: "/tasks/", headers: { cookie: session } });
  await app.inject({ url: `/tasks/${anna.secret}`, headers: anna.headers });
  expect(lines.map(({ status, key, ip }) => [status, key, ip])).toEqual([
    [200, "root", remoteAddress],
    [403, "anna", remoteAddress],
    [401, undefined, remoteAddress],
    [401, undefined, remoteAddress],
    [200, undefined, undefined],
    [200, "anna", undefined],
    [404, "anna", undefined],
  ]);
  const text = JSON.stringify(lines);
  for (const secret of [anna.secret, root.secret, session.split("=")[1]!]) expect(text).not.toContain(secret);
  expect(text).not.toMatch(/unreel_[\w-]/);
});

test("the line has no secret of the path, even if some of its characters are percent-encoded", async () => {
  const { app, lines, anna } = await start();
  const secret = anna.secret.replace("unreel_", "");
  const encoded = secret.replace(/.$/, (last) => `%${last.charCodeAt(0).toString(16)}`);
  const written = [
    `unreel_${secret}`,
    `%75nreel_${secret}`,
    `unreel%5F${secret}`,
    `%20unreel_${secret}`,
    `unreel_${encoded}`,
  ];
  for (const each of [...written, "A%20film"]) await app.inject({ url: `/tasks/${each}`, headers: anna.headers });
  expect(lines.map(({ path }) => path)).toEqual([
    "/tasks/unreel_…",
    "/tasks/…",
    "/tasks/unreel…",
    "/tasks/…",
    "/tasks/unreel_……",
    "/tasks/A%20film",
  ]);
});

test("the line of a failed request has the code of the error", async () => {
  const { app, lines, root } = await start();
  for (const url of ["/info?url=ftp://a.test/", "/tasks/unknown", "/tasks/?limit=0", "/nothing"])
    await app.inject({ url, headers: root.headers });
  expect(lines.map(({ status, code }) => [status, code])).toEqual([
    [400, "invalid_url"],
    [404, "not_found"],
    [400, "invalid_request"],
    [404, "not_found"],
  ]);
});

test("the line of a client that disconnects has its key too", async () => {
  const { app, lines, anna } = await start();
  await app.listen({ host: "127.0.0.1", port: 0 });
  (await openEvents(app, anna.headers)).hangUp();
  await vi.waitUntil(() => lines.some(({ path }) => path === "/tasks/events"), 60_000);
  expect(lines.find(({ path }) => path === "/tasks/events")).toMatchObject({ key: "anna" });
});

test("requests of /health/ are logged at level debug, in each kind of process", async () => {
  const { app, lines } = await start();
  const worker = openLog();
  const store = createMemoryStore();
  await using workerApp = await buildWorkerApp({ store, logger: worker.logger });
  for (const each of [app, workerApp])
    for (const url of ["/health/live", "/health/ready", "/health/nothing"]) await each.inject(url);
  for (const log of [lines, worker.lines])
    expect(log.map(({ path, level }) => [path, level])).toEqual([
      ["/health/live", 20],
      ["/health/ready", 20],
      ["/health/nothing", 30],
    ]);
});

test("a request whose path cannot be decoded has a line as well", async () => {
  const { app, lines } = await start();
  const response = await app.inject({ url: "/tasks/%zz?url=x", remoteAddress: "192.0.2.7" });
  expect(response.statusCode).toBe(400);
  const line = { method: "GET", path: "/tasks/%zz", ip: "192.0.2.7", status: 400, code: "invalid_request" };
  expect(lines).toMatchObject([{ ...line, reqId: response.headers["x-request-id"], msg: "request" }]);
});

test.each([
  [
    "the task fails",
    async (store: TaskStore, id: string) => void (await store.update(id, { state: "failed" })),
    /ends too early: failed/,
  ],
  ["the disk fails", async () => Promise.reject(new Error("EIO: i/o error, read")), /^EIO/],
])("the line of a response that the service breaks off says why: %s", async (_, fail, reason) => {
  const { logger, lines } = openLog();
  const store = createMemoryStore();
  const task = await store.create(newTask(pageUrl, {}, new Date()));
  await store.claim({ leaseMs: 60_000 });
  const stream = createStream([async (into) => into.write("half"), () => fail(store, task.id).then(() => null)]);
  const files = { ...openDiskFiles({ folder: makeFolder() }), openStream: async () => stream };
  const app = await openApp({ store, files, logger });
  const port = await listenApp(app);
  const path = `/tasks/${task.id}/stream`;
  await expect(fetch(`http://127.0.0.1:${port}${path}`).then((response) => response.bytes())).rejects.toThrow(
    "terminated",
  );
  expect(lines.filter(({ reqId }) => reqId !== undefined)).toMatchObject([
    { level: 40, path, reason: expect.stringMatching(reason), msg: "response broken off" },
  ]);
});

interface Sending {
  app: App;
  store: TaskStore;
  keys: KeyRing;
}

test.each([
  ["the app closes", ({ app }: Sending) => app.close(), "the service is shutting down"],
  [
    "its key is removed",
    async ({ store, keys }: Sending) => {
      await store.keys.remove("anna");
      await keys.refresh();
    },
    "the key was removed",
  ],
])("the line of a file that the service breaks off says why: %s", async (_, breakOff, reason) => {
  const { logger, lines } = openLog();
  const [store, files] = [createMemoryStore(), openDiskFiles({ folder: makeFolder() })];
  const { headers } = await addKey(store, "anna");
  const keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const app = await openApp({ store, files, keys, logger, finishMs: 20 });
  const content = Buffer.alloc(32 * 1024 * 1024);
  const { id } = await addFinishedTask({ store, files }, content, {}, "anna");
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const response = await fetch(`${url}/tasks/${id}/file`, { headers });
  await breakOff({ app, store, keys });
  await expect(response.bytes()).rejects.toThrow("terminated");
  await vi.waitUntil(() => lines.some(({ reqId }) => reqId !== undefined), 60_000);
  expect(lines.filter(({ reqId }) => reqId !== undefined)).toMatchObject([
    { level: 40, path: `/tasks/${id}/file`, reason, msg: "response broken off" },
  ]);
});
