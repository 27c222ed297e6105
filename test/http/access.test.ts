import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, test } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { samplePageInfo } from "../contracts/task-store/page-info.ts";
import { noMetrics } from "./failing-app.ts";
import { makeFolder, makeSharedFolder } from "../folder.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { recording } from "./recording.ts";
import { pageUrl, postTask } from "./requests.ts";

interface Setting {
  app: App;
  store: TaskStore;
  files: FileStore;
  /** Headers of each caller. */
  callers: Record<Caller, Record<string, string>>;
}

type Caller = "nobody" | "wrong" | "removed" | "other" | "own" | "admin";

/** An app whose keys are anna's, bert's and an admin's. */
async function createSetting(folder: string): Promise<Setting> {
  const store = createMemoryStore();
  const files = openDiskFiles({ folder });
  const anna = await addKey(store, "anna");
  const bert = await addKey(store, "bert");
  const admin = await addKey(store, "root", { admin: true });
  const removed = await addKey(store, "gone");
  await store.keys.remove("gone");
  const app = await buildApp({ store, files, metrics: noMetrics, web: true });
  const callers = {
    nobody: {},
    wrong: { authorization: "Bearer unreel_wrong" },
    removed: removed.headers,
    other: bert.headers,
    own: anna.headers,
    admin: admin.headers,
  };
  return { app, store, files, callers };
}

/** A setting of one test, with a task of anna's. */
async function openSetting(): Promise<Setting & { id: string }> {
  const setting = await createSetting(makeFolder());
  onTestFinished(() => setting.app.close());
  return { ...setting, id: await addAnnasTask(setting) };
}

/** Adds a task of anna's that has succeeded; returns its id. */
async function addAnnasTask({ store, files }: Setting): Promise<string> {
  const { id } = await addFinishedTask({ store, files }, Buffer.from("film"), {}, "anna");
  const thumbnails = [{ url: "http://127.0.0.1:1/a.jpg", width: null, height: null }];
  await store.update(id, { info: { ...samplePageInfo(), thumbnails } });
  return id;
}

/** The operations of the OpenAPI document, and what it leaves out. */
async function readOperations() {
  await using app = await buildApp({ metrics: noMetrics });
  const { paths } = (await app.inject("/openapi.json")).json() as {
    paths: Record<string, Record<string, { security: object[] }>>;
  };
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security }]) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase() as Method,
      path,
      isOpen: security.length === 0,
    })),
  );
  const others = [
    ["GET", "/"],
    ["HEAD", "/"],
    ["GET", "/manifest.webmanifest"],
    ["GET", "/openapi.json"],
    ["GET", "/docs"],
    ["GET", "/docs/json"],
    ["GET", "/docs/static/index.css"],
    ["GET", "/info/"],
    ["POST", "/tasks"],
    ["HEAD", "/tasks/"],
    ["HEAD", "/tasks/{id}/file"],
    ["HEAD", "/tasks/{id}/files/{name}"],
    ["HEAD", "/metrics"],
    ["OPTIONS", "/tasks/{id}"],
    ["PUT", "/tasks/"],
    ["GET", "/nothing"],
  ] as const;
  const hidden = others.map(([method, path]) => {
    const isOpen = path === "/" || path === "/manifest.webmanifest";
    return { name: `${method} ${path}`, method, path, isOpen };
  });
  return [...documented, ...hidden];
}

type Method = "GET" | "POST" | "PUT" | "DELETE" | "HEAD" | "OPTIONS";
type Operation = Awaited<ReturnType<typeof readOperations>>[number];

const operations = await readOperations();

/** What has no token is no link. */
const wrongLink = "/links/{token}";

let count = 0;

const bodies: Readonly<Record<string, object>> = {
  "/tasks/": { url: pageUrl },
  "/tasks/batch": { urls: [pageUrl] },
  "/tasks/{id}/links": { file: "A film.mp4", expires_in: 60 },
};

/** Calls an operation, on the task `id` if it is one on a task. */
async function call({ app, callers }: Setting, operation: Operation, caller: Caller, id: string) {
  const { method, path } = operation;
  const body = method === "POST" ? bodies[path] : undefined;
  const response = await app.inject({
    method,
    url: path.replace("{id}", id).replace("{name}", "A%20film.mp4") + (path === "/info" ? `?url=${pageUrl}` : ""),
    // From an address of its own, so that no limit plays a part.
    remoteAddress: `198.51.${count >> 8}.${count++ & 255}`,
    headers: { ...callers[caller], ...(body && { "content-type": "application/json" }) },
    ...(body && { payload: JSON.stringify(body) }),
    payloadAsStream: true,
  });
  response.stream().destroy();
  return response;
}

describe("every route of a service that has keys", () => {
  const folder = makeSharedFolder();
  let setting: Setting;
  let id: string;
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  beforeAll(async () => {
    process.on("warning", note);
    setting = await createSetting(folder);
  });
  beforeEach(async () => {
    id = await addAnnasTask(setting);
  });
  afterAll(async () => {
    await setting.app.close();
    process.off("warning", note);
  });

  it("is known here: only these are open", () => {
    const open = operations.filter(({ isOpen }) => isOpen).map(({ name }) => name);
    expect(open.toSorted()).toEqual([
      "DELETE /session",
      "GET /",
      "GET /health/live",
      "GET /health/ready",
      "GET /links/{token}",
      "GET /manifest.webmanifest",
      "HEAD /",
      "POST /session",
    ]);
    expect(operations.length).toBeGreaterThan(20);
  });

  it.each([
    ["/tasks/{id}", 401, 405],
    ["/tasks", 401, 405],
    ["/health/live", 405, 405],
    [wrongLink, 405, 405],
    ["/nothing", 401, 404],
  ])("asks for the key of %s before it refuses a method that no route has", async (path, withoutKey, withKey) => {
    for (const method of ["PUT", "OPTIONS"] as const) {
      const operation = { name: "", method, path, isOpen: false };
      const { statusCode: without } = await call(setting, operation, "nobody", id);
      const { statusCode } = await call(setting, operation, "own", id);
      const expected = [withoutKey, withKey].map((status) => (method === "OPTIONS" && status === 405 ? 204 : status));
      expect([without, statusCode]).toEqual(expected);
    }
  });

  describe.each(operations)("$name", (operation) => {
    const { isOpen, path } = operation;

    it.each(["nobody", "wrong", "removed"] as const)("lets them in if it is open: %s", async (caller) => {
      const { statusCode, headers } = await call(setting, operation, caller, id);
      if (isOpen) {
        expect(path === wrongLink ? [404] : [200, 204, 400]).toContain(statusCode);
        return;
      }
      expect(statusCode).toBe(401);
      expect(headers["www-authenticate"]).toBe("Bearer");
      expect(await setting.store.get(id)).toMatchObject({ state: "succeeded" });
    });

    it.each(["other", "own", "admin"] as const)("lets keys in: %s", async (caller) => {
      const { statusCode } = await call(setting, operation, caller, id);
      const isHidden = path.includes("{id}") && caller === "other" && operation.method !== "OPTIONS";
      if (isHidden || path === "/nothing" || path === wrongLink) expect(statusCode).toBe(404);
      else if (path === "/metrics") expect(statusCode).toBe(caller === "admin" ? 200 : 403);
      // 422: thumbnails on private networks are not fetched.
      else expect([200, 201, 204, 308, 400, 405, 409, 422]).toContain(statusCode);
      const kept = await setting.store.get(id);
      expect(kept === undefined).toBe(operation.name === "DELETE /tasks/{id}" && !isHidden);
    });
  });

  it("adds so few listeners to its response that Node does not warn of a leak", () => {
    expect(warnings.filter(({ name }) => name === "MaxListenersExceededWarning")).toEqual([]);
  });
});

describe("owners", () => {
  test("list their own tasks only; an admin lists all, or those of an owner", async () => {
    const { app, id, callers } = await openSetting();
    const mine = (await postTask(app, { url: pageUrl }, callers.other)).json<Task>();
    expect(mine.owner).toBe("bert");
    const list = async (caller: Caller, query = "") => {
      const response = await app.inject({ url: `/tasks/${query}`, headers: callers[caller] });
      return response.json<{ tasks: Task[] }>().tasks.map((task) => task.id);
    };
    expect(await list("own")).toEqual([id]);
    expect(await list("own", "?owner=anna&state=succeeded")).toEqual([id]);
    expect(await list("other")).toEqual([mine.id]);
    expect(await list("admin")).toEqual([mine.id, id]);
    expect(await list("admin", "?owner=anna")).toEqual([id]);
    expect(await list("admin", "?owner=gone")).toEqual([]);
  });

  test("keep the filter on the next page", async () => {
    const { app, store, id, callers } = await openSetting();
    await store.create(newTask(pageUrl, {}, new Date(), "bert"));
    const hers = await store.create(newTask(pageUrl, {}, new Date(), "anna"));
    const headers = callers.admin;
    const first = await app.inject({ url: "/tasks/?owner=anna&limit=1", headers });
    const { tasks, next } = first.json<{ tasks: Task[]; next: string }>();
    const second = (await app.inject({ url: next, headers })).json<{ tasks: Task[] }>();
    expect([tasks[0]?.id, second.tasks.map((task) => task.id)]).toEqual([hers.id, [id]]);
  });

  test("use the same idempotency key without meeting", async () => {
    const { app, callers } = await openSetting();
    const post = async (caller: Caller, url: string) => {
      const headers = { ...callers[caller], "idempotency-key": "k" };
      return (await postTask(app, { url }, headers)).json<Task>().id;
    };
    const [hers, his] = [await post("own", pageUrl), await post("other", `${pageUrl}?other`)];
    expect(his).not.toBe(hers);
    expect(await post("own", pageUrl)).toBe(hers);
  });

  test.each(["cancel", "finish", "retry"])("cannot %s what is another's", async (action) => {
    const { app, store, callers } = await openSetting();
    const { id } = await store.create(newTask(pageUrl, {}, new Date(), "anna"));
    await store.update(id, { state: "running" });
    await store.update(id, { progress: recording });
    if (action === "retry") await store.update(id, { state: "failed" });
    const url = `/tasks/${id}/${action}`;
    const before = await store.get(id);
    const refused = await app.inject({ method: "POST", url, headers: callers.other });
    expect(refused.statusCode).toBe(404);
    expect(refused.json().detail).toBe(`there is no task ${id}`);
    expect(await store.get(id)).toEqual(before);
    const done = await app.inject({ method: "POST", url, headers: callers.own });
    expect(done.statusCode).toBe(200);
  });

  test("of tasks made before there were keys are nobody: an admin sees these", async () => {
    const { app, store, callers } = await openSetting();
    const { id } = await store.create(newTask(pageUrl, {}, new Date()));
    const statuses = [];
    for (const caller of ["own", "admin"] as const) {
      statuses.push((await app.inject({ url: `/tasks/${id}`, headers: callers[caller] })).statusCode);
    }
    expect(statuses).toEqual([404, 200]);
  });
});

describe("without keys", () => {
  test("metrics, which are for admins, are for nobody", async () => {
    await using app = await buildApp({ metrics: noMetrics });
    const response = await app.inject("/metrics");
    expect(response.statusCode).toBe(403);
    expect(response.json()).toMatchObject({
      code: "forbidden",
      detail:
        "metrics need the key of an admin: npm run -s key -- add NAME --admin, or set METRICS_PORT " +
        "to serve them without one",
    });
  });

  test("everything is as it was, whatever key is sent", async () => {
    await using app = await buildApp();
    const headers = { authorization: "Bearer wrong" };
    const created = await postTask(app, { url: pageUrl }, headers);
    expect(created.statusCode).toBe(201);
    expect(created.json()).not.toHaveProperty("owner");
  });
});

test("a secret that is sent in a wrong place is not sent back", async () => {
  const { app } = await openSetting();
  for (const payload of ["unreel_secret", '{"key": ["unreel_secret"]}']) {
    const response = await app.inject({
      method: "POST",
      url: "/session",
      headers: { "content-type": "application/json" },
      payload,
    });
    expect(response.statusCode).toBe(400);
    expect(response.body).not.toMatch(/unreel_\w/);
  }
});
