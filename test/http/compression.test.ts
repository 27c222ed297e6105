import { createHook } from "node:async_hooks";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { makeFolder } from "../folder.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { openEvents } from "./event-client.ts";
import { type AppResponse, withApp } from "./failing-app.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { listedTask } from "./listed-task.ts";
import { getInfo, pageUrl } from "./requests.ts";

let app: App;
let store: TaskStore;
beforeEach(async () => {
  store = createMemoryStore();
  app = await buildApp({ store });
});
afterEach(() => app.close());

async function addTasks(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i += 1) ids.push((await store.create(listedTask(i))).id);
  return ids;
}

function get(url: string, encoding?: string, headers: Record<string, string> = {}) {
  const accepted = encoding === undefined ? {} : { "accept-encoding": encoding };
  return app.inject({ url, headers: { ...accepted, ...headers } });
}

function codingOf({ headers }: AppResponse): unknown {
  return headers["content-encoding"];
}

describe("JSON responses", () => {
  it("over 1 KiB are compressed with gzip for clients that accept it", async () => {
    await addTasks(3);
    const plain = await get("/tasks/");
    const zipped = await get("/tasks/", "gzip, deflate, br");
    expect(codingOf(plain)).toBeUndefined();
    expect(codingOf(zipped)).toBe("gzip");
    expect([plain.headers.vary, zipped.headers.vary]).toEqual(Array(2).fill("accept-encoding"));
    expect(zipped.headers["content-type"]).toBe(plain.headers["content-type"]);
    expect(zipped.headers["content-length"]).toBe(`${zipped.rawPayload.length}`);
    expect(zipped.rawPayload.length).toBeLessThan(plain.rawPayload.length);
    expect(gunzipSync(zipped.rawPayload)).toEqual(plain.rawPayload);
  });

  it("are compressed two at a time, and those of an owner who asks for one before the many of another", async () => {
    const [eve, bob] = [await addKey(store, "eve"), await addKey(store, "bob")];
    await app.close();
    app = await buildApp({ store });
    const order: string[] = [];
    const ask = async (name: string, { headers }: typeof eve) => {
      const response = await get("/openapi.json", "gzip", headers);
      expect([response.statusCode, codingOf(response)]).toEqual([200, "gzip"]);
      order.push(name);
    };
    const inPool = new Set<number>();
    let most = 0;
    const hook = createHook({
      init(id, type) {
        if (type === "ZLIB") most = Math.max(most, inPool.add(id).size);
      },
      before: (id) => void inPool.delete(id),
    }).enable();
    onTestFinished(() => void hook.disable());
    const asked = Array.from({ length: 40 }, () => ask("eve", eve));
    await Promise.all([...asked, ask("bob", bob)]);
    expect(order.indexOf("bob")).toBeLessThan(30);
    // Bob's own is one more.
    expect(most).toBeLessThanOrEqual(3);
  });

  it("of 50 tasks of one site take at most 10 kB", async () => {
    await addTasks(50);
    const plain = await get("/tasks/");
    const zipped = await get("/tasks/", "gzip");
    expect(plain.rawPayload.length).toBeGreaterThan(100_000);
    expect(zipped.rawPayload.length).toBeLessThanOrEqual(10_000);
    expect(gunzipSync(zipped.rawPayload)).toEqual(plain.rawPayload);
  });

  it.each([
    ["gzip", "gzip"],
    ["GZIP", "gzip"],
    ["*", "gzip"],
    ["gzip;q=0.1", "gzip"],
    ["br, gzip;q=0.5, *;q=0", "gzip"],
    ["identity;q=0", undefined],
    ["identity;q=0, gzip", "gzip"],
    ["identity;q=0, *", "gzip"],
    ["identity, gzip;q=0.5", undefined],
    ["gzip;q=0", undefined],
    ["gzip;q=0, *", undefined],
    ["*;q=0", undefined],
    ["br", undefined],
    ["", undefined],
    [`${"a,".repeat(2_000)}gzip`, "gzip"],
    ["gzip;q=nonsense", undefined],
  ])("for Accept-Encoding: %s", async (accepted, coding) => {
    await addTasks(3);
    const response = await get("/tasks/", accepted);
    expect([response.statusCode, codingOf(response)]).toEqual([200, coding]);
    const body = coding === undefined ? response.rawPayload : gunzipSync(response.rawPayload);
    expect(JSON.parse(body.toString()).tasks).toHaveLength(3);
  });

  it("of up to 1 KiB stay as they are, unless the client refuses that", async () => {
    expect(codingOf(await get("/tasks/", "gzip"))).toBeUndefined();
    const forced = await get("/tasks/", "gzip, identity;q=0");
    expect(codingOf(forced)).toBe("gzip");
    expect(gunzipSync(forced.rawPayload).toString()).toBe('{"tasks":[],"next":null}');
  });

  it("are measured in bytes", async () => {
    await store.create(newTask(pageUrl, { format_id: "映".repeat(255) }, new Date()));
    expect((await get("/tasks/")).body.length).toBeLessThan(1_024);
    expect(codingOf(await get("/tasks/", "gzip"))).toBe("gzip");
  });

  it("that are problem documents too", async () => {
    const message = "the page is broken, ".repeat(100);
    const page = () => Promise.reject(new ServiceError("upstream_invalid", message));
    const response = await withApp({ page }, (failing) => getInfo(failing, pageUrl, { "accept-encoding": "gzip" }));
    expect([response.statusCode, codingOf(response)]).toEqual([502, "gzip"]);
    expect(response.headers["content-type"]).toContain("application/problem+json");
    expect(JSON.parse(gunzipSync(response.rawPayload).toString()).detail).toBe(message);
  });

  it.each(["/nothing", "/tasks/x", "/tasks/?limit=0"])("for errors at %s", async (url) => {
    const response = await get(url, "gzip, identity;q=0");
    expect(codingOf(response)).toBe("gzip");
    expect(JSON.parse(gunzipSync(response.rawPayload).toString())).toHaveProperty("code");
  });

  it("get the same headers for HEAD", async () => {
    await addTasks(3);
    const [head, whole] = await Promise.all(
      (["HEAD", "GET"] as const).map((method) =>
        app.inject({ method, url: "/tasks/", headers: { "accept-encoding": "gzip" } }),
      ),
    );
    // Each request has its own id and time.
    const own = { date: "", "x-request-id": "" };
    expect({ ...head?.headers, ...own }).toEqual({ ...whole?.headers, ...own });
    expect(head?.rawPayload.length).toBe(0);
  });
});

describe("the entity tag of a compressed task", () => {
  it("is another one than that of the same task as it is", async () => {
    const [id] = await addTasks(1);
    const [plain, zipped] = [await get(`/tasks/${id}`), await get(`/tasks/${id}`, "gzip")];
    expect(codingOf(zipped)).toBe("gzip");
    expect(zipped.headers.etag).toMatch(/^"[\w-]+"$/);
    expect(zipped.headers.etag).not.toBe(plain.headers.etag);
  });

  it("is known again, however the client asks", async () => {
    const [id] = await addTasks(1);
    const url = `/tasks/${id}`;
    const tags = [(await get(url)).headers.etag, (await get(url, "gzip")).headers.etag];
    for (const tag of tags.map(String)) {
      for (const encoding of [undefined, "gzip"]) {
        const response = await get(url, encoding, { "if-none-match": `"x", W/${tag}` });
        expect([response.statusCode, response.headers.etag]).toEqual([304, tag]);
        expect(response.headers.vary).toBe("accept-encoding");
        expect((await get(url, encoding, { "if-match": tag })).statusCode).toBe(200);
      }
    }
    await store.update(id!, { attempts: 2 });
    for (const tag of tags.map(String)) {
      expect((await get(url, "gzip", { "if-none-match": tag })).statusCode).toBe(200);
      const deleted = app.inject({ method: "DELETE", url, headers: { "if-match": tag } });
      expect((await deleted).statusCode).toBe(412);
    }
  });
});

describe("never compressed are", () => {
  const everything = "gzip, *;q=0";

  it("files", async () => {
    const folder = makeFolder();
    const files = openDiskFiles({ folder });
    await using withFiles = await buildApp({ store, files });
    const { id } = await addFinishedTask({ store, files }, Buffer.alloc(5_000, "a"));
    const headers = { "accept-encoding": everything };
    const response = await withFiles.inject({ url: `/tasks/${id}/file`, headers });
    expect(codingOf(response)).toBeUndefined();
    expect(response.rawPayload.length).toBe(5_000);
  });

  it("event streams", async () => {
    await app.listen({ host: "127.0.0.1", port: 0 });
    const { response, take } = await openEvents(app, { "accept-encoding": everything });
    await addTasks(1);
    expect(response.headers["content-encoding"]).toBeUndefined();
    expect((await take(2))[1]?.type).toBe("task");
  });

  it("pages", async () => {
    expect(codingOf(await get("/docs/", everything))).toBeUndefined();
  });
});
