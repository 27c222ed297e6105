import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { Worker } from "node:worker_threads";
import { describe, expect, it, vi } from "vitest";
import { buildApp, buildWorkerApp } from "./app.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { addFinishedTask } from "./finished-task.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { ClosingResult } from "./closing-thread.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { pageUrl } from "./requests.ts";
import { openEvents } from "./event-client.ts";
import { makeFolder } from "../folder.ts";

describe("closing the app", () => {
  it("leaves the store and the resolver that it was given open", async () => {
    const store = createMemoryStore();
    const close = vi.fn<() => Promise<void>>(async () => {});
    const app = await buildApp({ store, resolver: { ...createStubResolver(), close } });
    await app.close();
    await expect(store.ping()).resolves.toBeUndefined();
    expect(close).not.toHaveBeenCalled();
  });

  it("leaves a worker's store open", async () => {
    const store = createMemoryStore();
    const app = await buildWorkerApp({ store });
    await app.close();
    await expect(store.ping()).resolves.toBeUndefined();
  });

  it("leaves nothing open that it created itself", async () => {
    const temporary = makeFolder();
    // In a thread: other files of tests leave timers that end at any moment.
    const thread = new Worker(new URL("closing-thread.ts", import.meta.url), {
      env: { ...process.env, TMPDIR: temporary },
      execArgv: [],
    });
    const [result] = (await once(thread, "message")) as [ClosingResult];
    expect(result.statusCodes).toEqual([201, 200, 404, 204]);
    expect(result.listening.length).toBeGreaterThan(result.before.length);
    expect(result.closed).toEqual(result.before);
    expect(result.temporary).toEqual([]);
  });

  it("resets connections whose response is not complete, so that nobody takes their end for that of the response", async () => {
    const folder = makeFolder();
    const [store, files] = [createMemoryStore(), openDiskFiles({ folder })];
    const app = await buildApp({ store, files, finishMs: 20 });
    const { id } = await addFinishedTask({ store, files }, Buffer.alloc(32 * 1024 * 1024));
    const response = await fetch(`${await app.listen({ port: 0, host: "127.0.0.1" })}/tasks/${id}/file`);
    await app.close();
    await expect(response.bytes()).rejects.toMatchObject({ cause: { code: "ECONNRESET" } });
  });

  it("refuses requests that still wait for their response", async () => {
    const store = createMemoryStore();
    const app = await buildApp({ store, finishMs: 20 });
    const { id } = await store.create(newTask(pageUrl, {}, new Date()));
    const watched = vi.spyOn(store.events, "subscribe");
    const response = fetch(`${await app.listen({ port: 0, host: "127.0.0.1" })}/tasks/${id}/stream`);
    await vi.waitFor(() => expect(watched).toHaveBeenCalled(), { timeout: 60_000 });
    await app.close();
    const { status, headers } = await response;
    expect([status, headers.get("retry-after"), await (await response).json()]).toMatchObject([
      503,
      "5",
      { code: "unavailable", retryable: true },
    ]);
  });

  it("refuses HEAD that still waits without a body", async () => {
    const store = createMemoryStore();
    const app = await buildApp({ store, finishMs: 20 });
    const { id } = await store.create(newTask(pageUrl, {}, new Date()));
    const watched = vi.spyOn(store.events, "subscribe");
    await app.listen({ port: 0, host: "127.0.0.1" });
    const socket = connect((app.server.address() as AddressInfo).port, "127.0.0.1");
    socket.write(`HEAD /tasks/${id}/stream HTTP/1.1\r\nhost: a\r\n\r\n`);
    await vi.waitFor(() => expect(watched).toHaveBeenCalled(), { timeout: 60_000 });
    const response = text(socket);
    await app.close();
    expect(await response).toMatch(/^HTTP\/1\.1 503 [^]*\r\n\r\n$/);
  });

  it("can be done twice", async () => {
    const app = await buildApp();
    await app.close();
    await expect(app.close()).resolves.toBeUndefined();
  });
});

describe("an app that drains", () => {
  it("serves every request, and closes the connection after each response", async () => {
    const drainSignal = new AbortController();
    await using app = await buildApp({ drainSignal: drainSignal.signal });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const post = () =>
      fetch(`${url}/tasks/`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: "https://example.com/watch" }),
      });
    const before = await post();
    drainSignal.abort();
    const after = await post();
    expect([before, after].map(({ status }) => status)).toEqual([201, 201]);
    const kept = [before, after].map(({ headers }) => headers.get("connection"));
    expect(kept).toEqual(["keep-alive", "close"]);
    const missing = await fetch(`${url}/nothing`);
    expect([missing.status, missing.headers.get("connection")]).toEqual([404, "close"]);
  });

  it("still sends events, and ends the streams when it closes", async () => {
    const drainSignal = new AbortController();
    const app = await buildApp({ drainSignal: drainSignal.signal });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const early = await openEvents(app);
    drainSignal.abort();
    const late = await openEvents(app);
    expect(late.response.headers.connection).toBe("close");
    const payload = { url: "https://example.com/watch" };
    await app.inject({ method: "POST", url: "/tasks/", payload });
    await app.close();
    for (const client of [early, late]) {
      expect((await client.rest()).filter(({ type }) => type === "task")).toHaveLength(1);
    }
  });
});
